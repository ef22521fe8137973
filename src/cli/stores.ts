// Opens the store of an app for operations: a SQLite file, or PostgreSQL by its URL. It creates nothing and upgrades nothing.
import type { Store } from '../store/store.ts'
import { RallyError } from '../protocol/errors.ts'
import { UsageError } from './exit.ts'

/** The URL may contain a password, so no message repeats it. */
export async function openStore(address: string, schema: string | undefined): Promise<Store> {
  if (/^postgres(ql)?:\/\//.test(address)) {
    const { existingPostgres } = await import('../store/postgres/store.ts')
    return existingPostgres(address, schema === undefined ? {} : { schema })
  }
  if (/^[a-z][a-z\d+.-]+:\/\//i.test(address))
    throw new UsageError('--store must be a SQLite file, or a URL that begins with postgres:// or postgresql://.')
  if (schema !== undefined) throw new UsageError('--schema is only for a PostgreSQL store.')
  const { existingSqlite } = await import('../store/sqlite/store.ts')
  return existingSqlite(address)
}

/** What the person did wrong, and what is wrong with the database. */
export function storeError(error: unknown): unknown {
  if (error instanceof RallyError) {
    const message = error.message.replace(/^(?:sqlite|postgres|app\.tasks\.\w+)\(\): /, '')
    return USAGE_CODES.has(error.code)
      ? new UsageError(message, { cause: error })
      : new Error(message, { cause: error })
  }
  if (!(error instanceof Error) || !('code' in error)) return error
  // The driver tries every address of a host, and then its own message is empty.
  const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : [error]
  const why = first instanceof Error && first.message !== '' ? first.message : String(error.code)
  return new Error(`The store failed: ${why}`, { cause: error })
}

const USAGE_CODES: ReadonlySet<string | number> = new Set([
  'OPTION_INVALID',
  'STORE_PATH',
  'TASK_UNKNOWN',
  'TASK_ENDED',
  'TASK_NOT_RETRYABLE',
  'TASK_CURSOR',
])
