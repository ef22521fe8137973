// Opens the store of the demo, as `--store` says: a SQLite file, a PostgreSQL database, or memory.
import { MemoryStore, type Store } from 'mcp-rally'
import { postgres } from 'mcp-rally/postgres'
import { sqlite } from 'mcp-rally/sqlite'

/** Throws an error that says what to pass instead. */
export async function openStore(where: string): Promise<Store> {
  if (where === 'memory') return new MemoryStore()
  if (/^postgres(ql)?:/i.test(where)) return openPostgres(where)
  if (where === '' || /^[a-z][a-z\d+.-]+:/i.test(where)) {
    throw new Error(`--store must be the path of a file, postgres://user:password@host/database, or memory.`)
  }
  try {
    return sqlite(where)
  } catch (error) {
    throw new Error(`--store ${where}: ${messageOf(error)}`, { cause: error })
  }
}

/** Sends a query at once, so that a wrong address is reported now and not with the first task. */
async function openPostgres(url: string): Promise<Store> {
  try {
    const store = postgres(url)
    await store.tasks.sweep()
    return store
  } catch (error) {
    // The message does not repeat the URL, because it may contain a password.
    const message = `--store: the database cannot be used (${messageOf(error)}). Check that PostgreSQL runs there, and that user, password and database are correct.`
    throw new Error(message, { cause: error })
  }
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // A host with several addresses fails with an AggregateError, which has a code but no message.
  return error.message !== '' || !('code' in error) ? error.message : String(error.code)
}
