// mcp-rally/postgres: the store of a fleet. The only entry that loads pg, and only for a URL.
export { postgres, type PostgresOptions } from './store/postgres/store.ts'
export type { ConnectionLike, PoolLike, QueryLike, RowsLike } from './store/postgres/pool.ts'
