// A call that waits in a file for its answers: its pending round and its server. Headers and environment variables are
// not saved, because they may be secrets. The user passes them again.
import { constants, createReadStream } from 'node:fs'
import { access, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { buffer } from 'node:stream/consumers'
import type { PendingCall } from '../client/saved.ts'
import { readPending } from '../client/call.ts'
import { isObject } from '../protocol/json.ts'
import { shown } from '../protocol/text.ts'
import { readJsonObject } from './arguments.ts'
import { UsageError } from './exit.ts'
import type { Server } from './server.ts'
import { isAddress } from './server.ts'

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
  const text = `${JSON.stringify({ rally: VERSION, server: withoutSecrets(server), pending }, null, 2)}\n`
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

/** What a configuration file says of headers and variables is not saved. */
function withoutSecrets(server: Server): Server {
  if ('url' in server) return { url: server.url }
  const { command, args, cwd } = server
  return { command, ...(args !== undefined && { args }), ...(cwd !== undefined && { cwd }) }
}

/** Reads a file that somebody else may have written. */
export async function readSaved(path: string): Promise<Saved> {
  const text = await readBounded(path)
  const { rally, server, pending } = readJsonObject(text, path)
  if (rally !== VERSION) throw new UsageError(`${path} is not a call that rally saved with --save.`)
  return { server: readServer(server, path), pending: readPending(pending) }
}

/** The largest response, and room for the arguments. */
const MAX_FILE_BYTES = 32 * 1_048_576

/** The file may be a device or a pipe that never ends. */
async function readBounded(path: string): Promise<string> {
  const bytes = await buffer(createReadStream(path, { end: MAX_FILE_BYTES })).catch((error: Error) => {
    throw new UsageError(`The saved call cannot be read: ${error.message}`)
  })
  if (bytes.length > MAX_FILE_BYTES) throw new UsageError(`${path} must have at most ${MAX_FILE_BYTES} bytes.`)
  return bytes.toString('utf8')
}

/** The user is shown all of it before it is used. */
const MAX_SERVER_LENGTH = 8_192

/** Returns only what `save` writes: anything else in the file has no effect. */
function readServer(server: unknown, path: string): Server {
  const { url, command, args = [], cwd } = isObject(server) ? server : {}
  const isTooLong = JSON.stringify([url, command, args, cwd]).length > MAX_SERVER_LENGTH
  if (isTooLong) throw new UsageError(`${path}: its server must have at most ${MAX_SERVER_LENGTH} characters.`)
  if (url !== undefined) {
    if (typeof url === 'string' && isAddress(url) && URL.canParse(url)) return { url }
    throw new UsageError(`${path}: its server must have a url that begins with http: or https:, got ${shown(url)}.`)
  }
  const areTexts = Array.isArray(args) && args.every(isWord) && (cwd === undefined || isWord(cwd))
  if (!isWord(command) || command === '' || !areTexts) {
    throw new UsageError(`${path}: its server must have a url, or a command with args and a cwd.`)
  }
  return { command, args, ...(cwd !== undefined && { cwd }) }
}

/** No program can be given a text with a null character. */
function isWord(value: unknown): value is string {
  return typeof value === 'string' && !value.includes('\0')
}
