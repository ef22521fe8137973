// Single use for a fleet: of all instances on the database, one takes a key.
import type { OnceClaim, OnceStore } from '../once.ts'
import { RallyError } from '../../protocol/errors.ts'
import { NOW, statement, type Database, type Statement } from './database.ts'
import { Sweeping } from './sweeper.ts'
import { fromText, toName, toSpan, toText } from './texts.ts'

const MOST_TRIES = 100

export class PostgresOnceStore implements OnceStore {
  readonly #database: Database
  readonly #sweeping: Sweeping
  readonly #claim: Statement
  readonly #renew: Statement
  readonly #settle: Statement
  readonly #release: Statement

  constructor(database: Database) {
    const table = `${database.schema}.once`
    this.#database = database
    this.#sweeping = new Sweeping(database, 'once', ['key'])
    this.#claim = statement(claimText(table, `${database.schema}.fences`))
    const mine = `key = $1 AND fence::text = $2 AND record IS NULL`
    this.#renew = statement(`UPDATE ${table} SET expires_at = ${NOW} + $3::bigint WHERE ${mine} RETURNING 1`)
    this.#settle = statement(
      `UPDATE ${table} SET record = $3, expires_at = ${NOW} + $4::bigint WHERE ${mine} RETURNING 1`,
    )
    this.#release = statement(`DELETE FROM ${table} WHERE ${mine}`)
  }

  async claim(key: string, note: string, leaseMs: number): Promise<OnceClaim> {
    const values = [toName('key', key), toText('note', note), toSpan(leaseMs)]
    this.#sweeping.count()
    // Nothing comes back where another took or gave back the key after this statement had begun: the next one sees that.
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      const [row] = await this.#database.run(this.#claim, values)
      if (row === undefined) continue
      if (row['fence'] !== null) return { kind: 'yours', fence: fromText(row['fence']) }
      const left = fromText(row['note'])
      if (row['record'] === null) return { kind: 'held', note: left }
      return { kind: 'settled', note: left, record: fromText(row['record']) }
    }
    throw new RallyError('STORE_BUSY', `A key changed hands ${MOST_TRIES} times while it was to be taken: try again.`)
  }

  async renew(key: string, fence: string, leaseMs: number): Promise<boolean> {
    return (await this.#database.run(this.#renew, [toName('key', key), fence, toSpan(leaseMs)])).length > 0
  }

  async settle(key: string, fence: string, record: string, keepMs: number): Promise<boolean> {
    const values = [toName('key', key), fence, toText('record', record), toSpan(keepMs)]
    return (await this.#database.run(this.#settle, values)).length > 0
  }

  async release(key: string, fence: string): Promise<void> {
    await this.#database.run(this.#release, [toName('key', key), fence])
  }

  /** Forgets what has lapsed, a bounded number at a time. */
  sweep(): Promise<number> {
    return this.#sweeping.sweep()
  }
}

function claimText(table: string, fences: string): string {
  return `
    WITH taken AS (
      INSERT INTO ${table} AS o (key, note, fence, expires_at)
      VALUES ($1, $2, nextval('${fences}'), ${NOW} + $3::bigint)
      ON CONFLICT (key) DO UPDATE
        SET note = excluded.note, fence = excluded.fence, record = NULL, expires_at = excluded.expires_at
        WHERE o.expires_at <= ${NOW}
      RETURNING o.fence
    )
    SELECT fence::text, NULL AS note, NULL AS record FROM taken
    UNION ALL
    SELECT NULL, note, record FROM ${table}
      WHERE key = $1 AND expires_at > ${NOW} AND NOT EXISTS (SELECT 1 FROM taken)`
}
