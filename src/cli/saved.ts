// A call that waits in a file for its answers: its pending round and its server. Headers and environment variables are
// not saved, because they may be secrets. The user passes them again.
import { constants } from 'node:fs'
import { access, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { PendingCall } from '../client/saved.ts'
import { readPending } from '../client/call.ts'
import { readJsonObject } from './arguments.ts'
import { UsageError } from './exit.ts'
import type { Server } from './server.ts'

export interface Saved {
  readonly server: Server
  readonly pending: PendingCall
}

const VERSION = 1

/** Checks the folder before the call begins, not when it has to be saved. */
export async function checkWritable(path: string): Promise<void> {
  await access(dirname(resolve(path)), constants.W_OK).catch((error: Error) => {
    throw new UsageError(`--save ${path}: cannot write there (${error.message}).`)
  })
}

export async function save(path: string, { server, pending }: Saved): Promise<void> {
  const text = `${JSON.stringify({ rally: VERSION, server, pending }, null, 2)}\n`
  const beside = `${path}.${process.pid}.tmp`
  try {
    // Readable by its owner only: the state may be enough to resume the call.
    await writeFile(beside, text, { mode: 0o600 })
    await rename(beside, path)
  } catch (error) {
    await rm(beside, { force: true })
    throw new UsageError(`The call cannot be saved: ${(error as Error).message}`, { cause: error })
  }
}

export async function readSaved(path: string): Promise<Saved> {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new UsageError(`The saved call cannot be read: ${error.message}`)
  })
  const { rally, server, pending } = readJsonObject(text, path)
  if (rally !== VERSION || !isServer(server)) {
    throw new UsageError(`${path} is not a call that rally saved with --save.`)
  }
  return { server, pending: readPending(pending) }
}

function isServer(value: unknown): value is Server {
  if (typeof value !== 'object' || value === null) return false
  const { url, command, args = [], cwd = '' } = value as Record<string, unknown>
  if (typeof url === 'string') return true
  const areTexts = Array.isArray(args) && args.every((each) => typeof each === 'string')
  return typeof command === 'string' && areTexts && typeof cwd === 'string'
}
