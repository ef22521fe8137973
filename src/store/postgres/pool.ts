// The connections of the PostgreSQL store: those of a pool that was given, or of one made for a URL.
import type * as Pg from 'pg'
import { RallyError } from '../../protocol/errors.ts'

/** What is needed of a pool: a `Pool` of pg has it. */
export interface PoolLike {
  query(query: QueryLike): Promise<RowsLike>
  connect(): Promise<ConnectionLike>
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
}

export interface ConnectionLike {
  query(query: QueryLike): Promise<RowsLike>
  release(destroy?: boolean): void
  on(event: 'notification', listener: (notification: { payload?: string | undefined }) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'end', listener: () => void): unknown
  unref?(): void
}

export interface QueryLike {
  text: string
  /** A statement with a name is prepared once on each connection. */
  name?: string
  values?: unknown[]
  query_timeout?: number
}

export interface RowsLike {
  rows: Record<string, unknown>[]
}

export interface OwnPool extends PoolLike {
  end(): Promise<void>
}

const CONNECT_MS = 10_000
const QUERY_MS = 30_000
const KEEP_ALIVE_MS = 10_000

export async function makePool(url: string, connections: number): Promise<OwnPool> {
  const { Pool } = await loadDriver()
  return new Pool({
    connectionString: url,
    // One of them listens.
    max: connections + 1,
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
    throw new RallyError('STORE_DRIVER_MISSING', 'The PostgreSQL store needs the package pg: run `npm install pg`.', {
      cause,
    })
  }
}
