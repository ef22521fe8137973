// Single use in PostgreSQL: of all instances that share the database, one claims a key.
import { RallyError } from '../../protocol/errors.ts'
import type { OnceClaim, OnceStore } from '../once.ts'
import { namedQuery, NOW, type NamedQuery, type PostgresDatabase } from './database.ts'
import { Sweeper } from './sweeper.ts'
import { fromText, toName, toSpan, toText } from './text.ts'

const MAX_TRIES = 100

export class PostgresOnceStore implements OnceStore {
  readonly #database: PostgresDatabase
  readonly #sweeper: Sweeper
  readonly #claim: NamedQuery
  readonly #renew: NamedQuery
  readonly #settle: NamedQuery
  readonly #release: NamedQuery
  readonly #bytes: NamedQuery

  constructor(database: PostgresDatabase) {
    const table = `${database.schema}.once`
    this.#database = database
    this.#sweeper = new Sweeper(database, 'once', ['key'])
    this.#claim = namedQuery(claimText(table, `${database.schema}.fences`))
    const held = `key = $1 AND fence::text = $2 AND record IS NULL`
    this.#renew = namedQuery(`UPDATE ${table} SET expires_at = ${NOW} + $3::bigint WHERE ${held} RETURNING 1`)
    this.#settle = namedQuery(
      `UPDATE ${table} SET record = $3, expires_at = ${NOW} + $4::bigint WHERE ${held} RETURNING 1`,
    )
    this.#release = namedQuery(`DELETE FROM ${table} WHERE ${held}`)
    // A range of the primary key: "0" comes after "/".
    this.#bytes = namedQuery(`
      SELECT coalesce(sum(octet_length(key) + octet_length(note) + coalesce(octet_length(record), 0)), 0)::float8 AS bytes
        FROM ${table} WHERE key > $1 || '/' AND key < $1 || '0' AND expires_at > ${NOW}`)
  }

  async claim(key: string, note: string, leaseMs: number): Promise<OnceClaim> {
    const values = [toName('key', key), toText('note', note), toSpan(leaseMs)]
    this.#sweeper.countRow()
    // No row is returned if another caller claimed or released the key after this statement had begun. The next try sees that.
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const [row] = await this.#database.run(this.#claim, values)
      if (row === undefined) continue
      if (row['fence'] !== null) return { kind: 'yours', fence: fromText(row['fence']) }
      const earlierNote = fromText(row['note'])
      if (row['record'] === null) return { kind: 'held', note: earlierNote }
      return { kind: 'settled', note: earlierNote, record: fromText(row['record']) }
    }
    throw new RallyError(
      'STORE_BUSY',
      `PostgreSQL: a key changed hands during ${MAX_TRIES} tries to claim it. Try again.`,
    )
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

  async bytes(owner: string): Promise<number> {
    const [row] = await this.#database.run(this.#bytes, [toName('owner', owner)])
    return Number(row?.['bytes'] ?? 0)
  }

  /** Deletes expired keys, a bounded number per call. */
  sweep(): Promise<number> {
    return this.#sweeper.sweep()
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
