// Single use in SQLite.
import { randomUUID } from 'node:crypto'
import type { OnceClaim, OnceStore } from '../once.ts'
import type { SqliteStatement } from './driver.ts'
import type { SqliteFile } from './file.ts'
import type { GroupCommit } from './group-commit.ts'
import { fromPlain, toPlain } from './text.ts'

interface OnceRow {
  readonly note: string
  readonly record: string | null
}

export class SqliteOnceStore implements OnceStore {
  readonly #commits: GroupCommit
  readonly #now: () => number
  readonly #dropExpired: SqliteStatement
  readonly #find: SqliteStatement
  readonly #claim: SqliteStatement
  readonly #renew: SqliteStatement
  readonly #settle: SqliteStatement
  readonly #release: SqliteStatement
  readonly #bytes: SqliteStatement

  constructor({ database, commits, now }: SqliteFile) {
    this.#commits = commits
    this.#now = now
    // A few on every claim, so that rows expire as fast as new ones are added.
    this.#dropExpired = database.prepare(
      'DELETE FROM rally_once WHERE key IN (SELECT key FROM rally_once WHERE until <= ? ORDER BY until LIMIT 4)',
    )
    this.#find = database.prepare('SELECT note, record FROM rally_once WHERE key = ? AND until > ?')
    this.#claim = database.prepare('INSERT OR REPLACE INTO rally_once VALUES (?, ?, ?, ?, NULL)')
    const held = 'WHERE key = ? AND fence = ? AND record IS NULL'
    this.#renew = database.prepare(`UPDATE rally_once SET until = ? ${held}`)
    this.#settle = database.prepare(`UPDATE rally_once SET record = ?, until = ? ${held}`)
    this.#release = database.prepare(`DELETE FROM rally_once ${held}`)
    // A range of the primary key: "0" comes after "/".
    this.#bytes = database.prepare(
      `SELECT coalesce(sum(octet_length(key) + octet_length(note) + coalesce(octet_length(record), 0)), 0) AS bytes
         FROM rally_once WHERE key > ? || '/' AND key < ? || '0' AND until > ?`,
    )
  }

  claim(key: string, note: string, leaseMs: number): Promise<OnceClaim> {
    return this.#commits.write(() => {
      const now = this.#now()
      this.#dropExpired.run([now])
      const [row] = this.#find.all([toPlain(key), now]) as OnceRow[]
      if (row !== undefined) {
        const earlierNote = fromPlain(row.note)
        return row.record === null
          ? { kind: 'held', note: earlierNote }
          : { kind: 'settled', note: earlierNote, record: fromPlain(row.record) }
      }
      const fence = randomUUID()
      this.#claim.run([toPlain(key), toPlain(note), fence, now + leaseMs])
      return { kind: 'yours', fence }
    })
  }

  renew(key: string, fence: string, leaseMs: number): Promise<boolean> {
    return this.#commits.write(() => this.#renew.run([this.#now() + leaseMs, toPlain(key), toPlain(fence)]).changes > 0)
  }

  settle(key: string, fence: string, record: string, keepMs: number): Promise<boolean> {
    return this.#commits.write(() => {
      const until = this.#now() + keepMs
      return this.#settle.run([toPlain(record), until, toPlain(key), toPlain(fence)]).changes > 0
    })
  }

  async release(key: string, fence: string): Promise<void> {
    await this.#commits.write(() => this.#release.run([toPlain(key), toPlain(fence)]))
  }

  async bytes(owner: string): Promise<number> {
    const [row] = this.#bytes.all([owner, owner, this.#now()]) as { bytes: number }[]
    return row?.bytes ?? 0
  }
}
