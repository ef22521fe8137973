// Opens a SQLite database, with the SQLite of the runtime or with libsql. The driver is loaded when the first store is opened.
//
// 1. Every statement is run to its end: with `all` if it returns rows, with `run` if it does not. A statement that is left with unread
//    rows keeps its connection on an old snapshot, and every later write fails.
// 2. Parameters are strings, numbers and nulls. The driver ends the process on anything else.
import { closeSync, openSync, readSync } from 'node:fs'
import { resolve } from 'node:path'
import { loadLibsql } from '#libsql'
import { RallyError } from '../../protocol/errors.ts'
import type { SqliteDatabase, SqliteDriver } from './database.ts'
import { nodeSqlite } from './node-sqlite.ts'

export type { SqliteDatabase, SqliteStatement } from './database.ts'

/** How long SQLite itself waits for another process. It blocks the event loop meanwhile, so most of the waiting is done outside. */
const BUSY_MS = 5
const OPENING_MS = 10_000
const RETRY_MS = 10

export const IN_MEMORY = ':memory:'

export interface FileOptions {
  readonly synchronous: 'full' | 'normal'
}

export function openDatabase(path: string, { synchronous }: FileOptions): SqliteDatabase {
  const file = fileOf(path)
  const Driver = loadDriver()
  if (file !== IN_MEMORY) createFile(file)
  let database: SqliteDatabase | undefined
  try {
    database = new Driver(file, { timeout: BUSY_MS })
    if (file !== IN_MEMORY) useWriteAheadLog(database, file)
    database.exec(`PRAGMA synchronous = ${synchronous}`)
    return database
  } catch (error) {
    database?.close()
    throw toStoreError(error)
  }
}

const HEADER = 'SQLite format 3\0'

/** Opens a file that is there, and changes nothing in it. SQLite itself must be able to write to it, also to read it. */
export function openExisting(path: string): SqliteDatabase {
  const file = resolve(path)
  const header = Buffer.alloc(HEADER.length)
  try {
    const opened = openSync(file, 'r+')
    readSync(opened, header)
    closeSync(opened)
  } catch (cause) {
    throw new RallyError(
      'STORE_PATH',
      `Cannot open the file ${file}. Check that it exists, and that you may write to it: SQLite does, also to read it.`,
      {
        cause,
      },
    )
  }
  if (header.toString('latin1') !== HEADER) throw new RallyError('STORE_PATH', `${file} is not a SQLite file.`)
  const Driver = loadDriver()
  return new Driver(file, { timeout: BUSY_MS })
}

/** Retries while another process holds the lock. It blocks the event loop, so use it only while opening a store. */
export function retryWhileBusy<T>(run: () => T): T {
  const until = Date.now() + OPENING_MS
  for (;;) {
    try {
      return run()
    } catch (error) {
      if (!isBusy(error) || Date.now() > until) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS)
    }
  }
}

export function isBusy(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code, errcode } = error as { code?: unknown; errcode?: unknown }
  return typeof errcode === 'number' ? (errcode & PRIMARY_CODE) === BUSY_CODE : String(code).startsWith('SQLITE_BUSY')
}

/** The numbers of `node:sqlite`: the low byte says what happened, the rest of the number says more about it. */
const PRIMARY_CODE = 0xff
const BUSY_CODE = 5

export function toStoreError(error: unknown): RallyError {
  if (error instanceof RallyError) return error
  const message = error instanceof Error ? error.message : String(error)
  if (!isBusy(error)) return new RallyError('STORE_FAILED', `SQLite failed: ${message}`, { cause: error })
  return new RallyError(
    'STORE_BUSY',
    'SQLite: another process kept the file locked for 10 s. Check that no process is stopped in the middle of a write.',
    { cause: error },
  )
}

let driver: SqliteDriver | undefined

function loadDriver(): SqliteDriver {
  return (driver ??= nodeSqlite() ?? libsql())
}

function libsql(): SqliteDriver {
  const loaded = loadLibsql()
  if ('Driver' in loaded) return loaded.Driver
  throw new RallyError(
    'STORE_DRIVER_MISSING',
    'sqlite(): this runtime has no SQLite of its own (Node has it from 22.16 on), and the package libsql, or its binary for this platform, is missing. ' +
      'Run `npm install libsql`, with optional dependencies.',
    { cause: loaded.cause },
  )
}

/** Rejects URLs: the driver would connect to them. */
function fileOf(path: string): string {
  if (path === IN_MEMORY) return path
  if (path !== '' && !/^[a-z][a-z\d+.-]+:/i.test(path)) return resolve(path)
  throw new RallyError('STORE_PATH', `sqlite(): the path must be that of a file, or ":memory:", got "${path}".`)
}

/** Readable and writable by its owner only. SQLite gives the files beside it the same mode. */
function createFile(file: string): void {
  try {
    closeSync(openSync(file, 'a', 0o600))
  } catch (cause) {
    throw new RallyError(
      'STORE_PATH',
      `sqlite(): cannot open ${file} for writing. Check that its folder exists, and that this process may write to both.`,
      { cause },
    )
  }
}

function useWriteAheadLog(database: SqliteDatabase, file: string): void {
  const [row] = retryWhileBusy(() => database.prepare('PRAGMA journal_mode = wal').all([])) as {
    journal_mode?: unknown
  }[]
  if (row?.journal_mode === 'wal') return
  throw new RallyError(
    'STORE_PATH',
    `sqlite(): SQLite cannot use a write-ahead log for ${file}. Put the file on a local disk.`,
  )
}
