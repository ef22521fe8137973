// A call that waits in a file for its answers: its pending round, and where its server is. No headers and no variables of
// the environment: they may be secrets, and are given again.
import { constants } from 'node:fs'
import { access, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { PendingCall } from '../client/pending.ts'
import { readPending } from '../client/read-pending.ts'
import { readJsonObject } from './arguments.ts'
import { WrongUse } from './exit.ts'
import type { Server } from './server.ts'

export interface Saved {
  readonly server: Server
  readonly pending: PendingCall
}

const VERSION = 1

/** Before a call is begun that could not be saved. */
export async function checkPlace(path: string): Promise<void> {
  await access(dirname(resolve(path)), constants.W_OK).catch((error: Error) => {
    throw new WrongUse(`--save ${path}: nothing can be written there (${error.message}).`)
  })
}

export async function save(path: string, { server, pending }: Saved): Promise<void> {
  const text = `${JSON.stringify({ rally: VERSION, server, pending }, null, 2)}\n`
  const beside = `${path}.${process.pid}.tmp`
  try {
    // For its owner alone: whoever has the state may be able to go on with the call.
    await writeFile(beside, text, { mode: 0o600 })
    await rename(beside, path)
  } catch (error) {
    await rm(beside, { force: true })
    throw new WrongUse(`The call cannot be saved: ${(error as Error).message}`, { cause: error })
  }
}

export async function readSaved(path: string): Promise<Saved> {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new WrongUse(`The saved call cannot be read: ${error.message}`)
  })
  const { rally, server, pending } = readJsonObject(text, path)
  if (rally !== VERSION || !isServer(server)) {
    throw new WrongUse(`${path} is no call that rally saved with --save.`)
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
