// The SQLite database of a store: its driver, which is loaded with the first store, its file and its settings.
//
// Statements are run to their end, always: with `all` what gives rows, with `run` what gives none. One that is left in the middle
// of its rows holds the connection to what it saw then, and every later write fails. Parameters are texts, numbers and nulls:
// the driver ends the process on anything else.
import { closeSync, openSync } from 'node:fs'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { RallyError } from '../../protocol/errors.ts'

export type Value = string | number | null

export interface Statement {
  run(params: readonly Value[]): { readonly changes: number }
  all(params: readonly Value[]): unknown[]
}

export interface Database {
  readonly inTransaction: boolean
  exec(sql: string): unknown
  prepare(sql: string): Statement
  close(): unknown
}

/** How long a statement waits inside SQLite for another process. The event loop stands still meanwhile, so most of the waiting is ours. */
const BUSY_MS = 5
const OPENING_MS = 10_000
const RETRY_MS = 10

const IN_MEMORY = ':memory:'

export interface FileOptions {
  readonly synchronous: 'full' | 'normal'
}

export function openDatabase(path: string, { synchronous }: FileOptions): Database {
  const file = fileOf(path)
  const Driver = loadDriver()
  if (file !== IN_MEMORY) makeFile(file)
  let database: Database | undefined
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

/** Tries again while another process is in the way, without letting anything else go on: for opening only. */
export function patiently<T>(run: () => T): T {
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
  const said = error instanceof Error ? error.message : String(error)
  if (!isBusy(error)) return new RallyError('STORE_FAILED', `SQLite failed: ${said}`, { cause: error })
  return new RallyError(
    'STORE_BUSY',
    'Another process has kept the SQLite file locked for too long: see that none is stopped in the middle of a write.',
    { cause: error },
  )
}

type Driver = new (path: string, options: { timeout: number }) => Database

function loadDriver(): Driver {
  const require = createRequire(import.meta.url)
  try {
    return require('libsql') as Driver
  } catch (cause) {
    throw new RallyError(
      'STORE_DRIVER_MISSING',
      'The SQLite store needs the package libsql and its binary for this platform: run `npm install libsql`, with optional dependencies.',
      { cause },
    )
  }
}

/** The driver would take an address and go there. */
function fileOf(path: string): string {
  if (path === IN_MEMORY) return path
  if (path !== '' && !/^[a-z][a-z\d+.-]+:/i.test(path)) return resolve(path)
  throw new RallyError('STORE_PATH', `"${path}" is no path of a file: give one, or ":memory:".`)
}

/** For its owner alone. The files that SQLite puts beside it are as it is. */
function makeFile(file: string): void {
  try {
    closeSync(openSync(file, 'a', 0o600))
  } catch (cause) {
    throw new RallyError(
      'STORE_PATH',
      `The file ${file} cannot be opened for writing: see that its folder is there, and that this process may write to both.`,
      { cause },
    )
  }
}

function useWriteAheadLog(database: Database, file: string): void {
  const [row] = patiently(() => database.prepare('PRAGMA journal_mode = wal').all([])) as { journal_mode?: unknown }[]
  if (row?.journal_mode === 'wal') return
  throw new RallyError('STORE_PATH', `SQLite cannot keep a write-ahead log beside ${file}: put it on a local disk.`)
}
