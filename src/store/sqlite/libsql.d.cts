import type { SqliteDriver } from './database.ts'

export const loadLibsql: () => { readonly Driver: SqliteDriver } | { readonly cause: unknown }
