// mcp-rally/postgres: a store in PostgreSQL, for a fleet. The only entry that loads pg, and only if it is given a URL.
export { postgres, type PostgresOptions } from './store/postgres/store.ts'
export type { ConnectionLike, PoolLike, QueryLike, RowsLike } from './store/postgres/pool.ts'
