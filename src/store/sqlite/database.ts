// What both drivers are: the SQLite of the runtime, and libsql.

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

export type SqliteDriver = new (path: string, options: { timeout: number }) => SqliteDatabase
