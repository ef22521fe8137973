// The database behind the store's parts: set up with the first thing asked of it, and asked by prepared statements.
import { hash } from 'node:crypto'
import { RallyError } from '../../protocol/errors.ts'
import { setUp } from './schema.ts'
import type { ConnectionLike, OwnPool, PoolLike } from './pool.ts'

export interface Statement {
  readonly name: string
  readonly text: string
}

export type Row = Record<string, unknown>

/** Milliseconds since 1970 by the database's clock, when the statement began. Stable within it, so that an index serves a comparison. */
export const NOW = 'floor(extract(epoch FROM now()) * 1000)::bigint'

/** Named for its text: on connections that others use too, no other statement has this name. */
export function statement(text: string): Statement {
  return { name: `rally_${hash('sha256', text, 'hex').slice(0, 32)}`, text }
}

export class Database {
  /** Quoted, for use in statements. */
  readonly schema: string
  readonly #name: string
  readonly #make: (() => Promise<OwnPool>) | undefined
  #pool: PoolLike | undefined
  #own: OwnPool | undefined
  #ready = false
  #opening: Promise<PoolLike> | undefined
  #closed = false

  constructor(pool: PoolLike | (() => Promise<OwnPool>), schema: string) {
    this.schema = `"${schema}"`
    this.#name = schema
    if (typeof pool === 'function') this.#make = pool
    else this.#use(pool)
  }

  async run({ name, text }: Statement, values: unknown[]): Promise<Row[]> {
    const pool = await this.#opened()
    return (await pool.query({ name, text, values })).rows
  }

  /** A connection of one's own, to be released. */
  async connect(): Promise<ConnectionLike> {
    return (await this.#opened()).connect()
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#opening?.catch(() => {})
    this.#pool?.removeListener('error', ignore)
    // What was under way fails on a connection that ends, and that must not end the process.
    this.#own?.on('error', ignore)
    await this.#own?.end()
    this.#own = undefined
  }

  async #opened(): Promise<PoolLike> {
    if (this.#closed)
      throw new RallyError('STORE_CLOSED', 'The store has been closed: nothing may be asked of it any more.')
    if (this.#ready && this.#pool !== undefined) return this.#pool
    try {
      if (this.#opening !== undefined) return await this.#opening
    } catch {
      // That try had begun before this was asked: the database may be there by now.
    }
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined
    })
    return this.#opening
  }

  /** Where it fails, whoever asks next tries again. */
  async #open(): Promise<PoolLike> {
    if (this.#pool === undefined && this.#make !== undefined) this.#use((this.#own = await this.#make()))
    const pool = this.#pool as PoolLike
    await setUp(pool, this.#name)
    this.#ready = true
    return pool
  }

  /** An idle connection that is lost is no matter, as the pool makes another; unheard, its error would end the process. */
  #use(pool: PoolLike): void {
    this.#pool = pool
    pool.on('error', ignore)
  }
}

function ignore(): void {}
