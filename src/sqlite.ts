// mcp-rally/sqlite: a store in a SQLite file. The only entry that loads libsql, when the first store is opened.
export { sqlite, type SqliteOptions } from './store/sqlite/store.ts'
