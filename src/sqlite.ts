// mcp-rally/sqlite: a store in a SQLite file. The only entry that loads libsql, with the first store.
export { sqlite, type SqliteOptions } from './store/sqlite/store.ts'
