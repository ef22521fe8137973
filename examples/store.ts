// Where the demo keeps its tasks, as `--store` says: a file, a PostgreSQL database, or nowhere but in memory.
import { MemoryStore, type Store } from 'mcp-rally'
import { postgres } from 'mcp-rally/postgres'
import { sqlite } from 'mcp-rally/sqlite'

/** Fails with a sentence that says what to give instead. */
export async function openStore(where: string): Promise<Store> {
  if (where === 'memory') return new MemoryStore()
  if (/^postgres(ql)?:/i.test(where)) return openPostgres(where)
  if (where === '' || /^[a-z][a-z\d+.-]+:/i.test(where)) {
    throw new Error(`--store takes the path of a file, postgres://user:password@host/database, or memory.`)
  }
  try {
    return sqlite(where)
  } catch (error) {
    throw new Error(`--store ${where}: ${messageOf(error)}`, { cause: error })
  }
}

/** Asked something at once: otherwise nobody would hear that it cannot be reached before the first task. */
async function openPostgres(url: string): Promise<Store> {
  try {
    const store = postgres(url)
    await store.tasks.sweep()
    return store
  } catch (error) {
    // The URL may hold a password: it is not repeated.
    const message = `--store: the database cannot be used (${messageOf(error)}). See that PostgreSQL runs there, and that user, password and database are right.`
    throw new Error(message, { cause: error })
  }
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // A host of several addresses fails once for each of them, with no message of its own.
  return error.message !== '' || !('code' in error) ? error.message : String(error.code)
}
