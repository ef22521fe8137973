// Opens a SQLite database. The driver is loaded when the first store is opened.
//
// 1. Every statement is run to its end: with `all` if it returns rows, with `run` if it does not. A statement that is left with unread
//    rows keeps its connection on an old snapshot, and every later write fails.
// 2. Parameters are strings, numbers and nulls. The driver ends the process on anything else.
import { closeSync, openSync } from 'node:fs'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { RallyError } from '../../protocol/errors.ts'

export type SqliteValue = string | number | null

export interface SqliteStatement {
  run(params: readonly SqliteValue[]): { readonly changes: number }
  all(params: readonly SqliteValue[]): unknown[]
}

export interface SqliteDatabase {
  readonly inTransaction: boolean
  exec(sql: string): unknown
  prepare(sql: string): SqliteStatement
  close(): unknown
}

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
  return error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_BUSY')
}

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

type Driver = new (path: string, options: { timeout: number }) => SqliteDatabase

function loadDriver(): Driver {
  const require = createRequire(import.meta.url)
  try {
    return require('libsql') as Driver
  } catch (cause) {
    throw new RallyError(
      'STORE_DRIVER_MISSING',
      'sqlite(): the package libsql, or its binary for this platform, is missing. Run `npm install libsql`, with optional dependencies.',
      { cause },
    )
  }
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
