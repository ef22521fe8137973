// The connection pool of a PostgreSQL store: one that the app passes in, or one that is created for a URL.
import type * as Pg from 'pg'
import { RallyError } from '../../protocol/errors.ts'

/** What the store needs of a connection pool. A `Pool` of the package pg fits. */
export interface PoolLike {
  /** Runs one statement on any connection. */
  query(query: QueryLike): Promise<RowsLike>
  /** Takes a connection out of the pool. */
  connect(): Promise<ConnectionLike>
  /** Listens for errors of idle connections. */
  on(event: 'error', listener: (error: Error) => void): unknown
  /** Removes a listener that `on` added. */
  removeListener(event: 'error', listener: (error: Error) => void): unknown
}

/** One connection of a pool. A `PoolClient` of the package pg fits. */
export interface ConnectionLike {
  /** The id of its server process, as the server told the connection. A `PoolClient` has it. */
  readonly processID?: unknown
  /** Runs one statement. */
  query(query: QueryLike): Promise<RowsLike>
  /** Returns the connection to its pool, or closes it if `destroy` is true. */
  release(destroy?: boolean): void
  /** `processId` is that of the server process that sent it. Without it, a store receives its own events too, which does no harm. */
  on(
    event: 'notification',
    listener: (notification: { payload?: string | undefined; processId?: unknown }) => void,
  ): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'end', listener: () => void): unknown
  /** Removes a listener that `on` added. Optional. */
  removeListener?(event: 'error', listener: (error: Error) => void): unknown
  /** Lets the process end while the connection is open. Optional. */
  unref?(): void
}

/** A query as the store passes it to a pool. */
export interface QueryLike {
  /** The statement, with `$1` and so on for its values. */
  text: string
  /** A query with a name is prepared once on each connection. */
  name?: string
  /** The values, in their order. Default: none. */
  values?: unknown[]
  /** In milliseconds. */
  query_timeout?: number
}

/** The result of a query. */
export interface RowsLike {
  /** The rows, each by the names of its columns. */
  rows: Record<string, unknown>[]
}

/** How instances learn of each other's changes. See `PostgresOptions`. */
export type NotifyMode = 'listen' | 'poll'

export interface OwnPool extends PoolLike {
  end(): Promise<void>
}

const CONNECT_MS = 10_000
const QUERY_MS = 30_000
const KEEP_ALIVE_MS = 10_000

/**
 * Every statement has an index for what it looks for. A prepared statement keeps its plan. Made while a table is small, that could be to
 * read the whole table, which would be slow once the table has grown. And without the first setting, a statement for one task would be
 * planned again each time, because PostgreSQL estimates it to be cheaper than the plan for any number of tasks.
 */
const SETTINGS = 'SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off'

/** A pool for the statements of the store alone. Behind a pooler, which may not keep settings, statements are planned each time. */
export async function createPool(url: string, max: number, notify: NotifyMode): Promise<OwnPool> {
  const { Pool } = await loadDriver()
  return new Pool({
    connectionString: url,
    max,
    // If it fails, the connection is lost, which its first query reports.
    ...(notify === 'listen' && { verify: (client, done) => client.query(SETTINGS, () => done()) }),
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: QUERY_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    allowExitOnIdle: true,
  })
}

async function loadDriver(): Promise<Pick<typeof Pg, 'Pool'>> {
  try {
    return (await import('pg')).default
  } catch (cause) {
    throw new RallyError('STORE_DRIVER_MISSING', 'postgres(): the package pg is missing. Run `npm install pg`.', {
      cause,
    })
  }
}
