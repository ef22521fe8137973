// The database of a store. It connects and sets up its schema on the first query, and runs statements. They are prepared, except
// where a pooler may be in front of the database.
import { hash } from 'node:crypto'
import { RallyError } from '../../protocol/errors.ts'
import { ArrayValue } from './array-value.ts'
import type { ConnectionLike, NotifyMode, OwnPool, PoolLike } from './pool.ts'
import { setUp } from './schema.ts'

export interface NamedQuery {
  readonly name: string
  readonly text: string
}

export type Row = Record<string, unknown>

/** Milliseconds since 1970 when the statement began, by the database's clock. It is constant in a statement, so an index can be used. */
export const NOW = "floor(date_part('epoch', now()) * 1000)::bigint"

/** True for a row that has not expired. */
export const ALIVE = `(expires_at IS NULL OR expires_at > ${NOW})`

/** The name is a hash of the text, so that it cannot clash with other statements on a connection that is shared. */
export function namedQuery(text: string): NamedQuery {
  return { name: `rally_${hash('sha256', text, 'hex').slice(0, 32)}`, text }
}

export class PostgresDatabase {
  /** Quoted, for use in statements. */
  readonly schema: string
  readonly notify: NotifyMode
  readonly #schemaName: string
  readonly #mustExist: boolean
  readonly #createPool: (() => Promise<OwnPool>) | undefined
  #pool: PoolLike | undefined
  #ownPool: OwnPool | undefined
  #isReady = false
  #opening: Promise<PoolLike> | undefined
  #isClosed = false

  /** With `mustExist`, tables that are missing or of an earlier version are an error. */
  constructor(pool: PoolLike | (() => Promise<OwnPool>), schema: string, notify: NotifyMode, mustExist = false) {
    this.notify = notify
    this.#mustExist = mustExist
    this.schema = `"${schema}"`
    this.#schemaName = schema
    if (typeof pool === 'function') this.#createPool = pool
    else this.#use(pool)
  }

  async run({ name, text }: NamedQuery, given: unknown[]): Promise<Row[]> {
    const pool = await this.#opened()
    // Another pool than ours may not know how to encode them.
    const values = this.#createPool === undefined ? given.map(asArray) : given
    // A pooler may give each statement another connection, which does not know the names of this one.
    const query = this.notify === 'poll' ? { text, values } : { name, text, values }
    return (await pool.query(query)).rows
  }

  /** A connection of the caller's own. The caller must release it. */
  async connect(): Promise<ConnectionLike> {
    return (await this.#opened()).connect()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#opening?.catch(() => {})
    this.#pool?.removeListener('error', ignore)
    // Queries that still run fail when their connection ends. Without a listener, that error would end the process.
    this.#ownPool?.on('error', ignore)
    await this.#ownPool?.end()
    this.#ownPool = undefined
  }

  async #opened(): Promise<PoolLike> {
    if (this.#isClosed) {
      throw new RallyError('STORE_CLOSED', 'The PostgreSQL store has been closed. Do not use a store after close().')
    }
    if (this.#isReady && this.#pool !== undefined) return this.#pool
    try {
      if (this.#opening !== undefined) return await this.#opening
    } catch {
      // That try began before this call. The database may be available by now, so try again.
    }
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined
    })
    return this.#opening
  }

  /** If it fails, the next query tries again. */
  async #open(): Promise<PoolLike> {
    if (this.#pool === undefined && this.#createPool !== undefined) {
      this.#ownPool = await this.#createPool()
      this.#use(this.#ownPool)
    }
    const pool = this.#pool as PoolLike
    await setUp(pool, this.#schemaName, this.notify, this.#mustExist)
    this.#isReady = true
    return pool
  }

  /** The pool replaces an idle connection that is lost. Without a listener, the error of that connection would end the process. */
  #use(pool: PoolLike): void {
    this.#pool = pool
    pool.on('error', ignore)
  }
}

function asArray(value: unknown): unknown {
  return value instanceof ArrayValue ? value.elements : value
}

function ignore(): void {}
