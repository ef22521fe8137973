// Single use, remembered in SQLite.
import { randomUUID } from 'node:crypto'
import type { OnceClaim, OnceStore } from '../once.ts'
import { fromPlain, toPlain } from '../plain-text.ts'
import type { Database, Statement } from './driver.ts'
import type { Turn } from './group-commit.ts'

interface Row {
  readonly note: string
  readonly record: string | null
}

export class SqliteOnceStore implements OnceStore {
  readonly #turn: Turn
  readonly #now: () => number
  readonly #forget: Statement
  readonly #find: Statement
  readonly #take: Statement
  readonly #renew: Statement
  readonly #settle: Statement
  readonly #release: Statement

  constructor(database: Database, turn: Turn, now: () => number) {
    this.#turn = turn
    this.#now = now
    // A few on every claim: what has lapsed goes as fast as new ones come.
    this.#forget = database.prepare(
      'DELETE FROM rally_once WHERE key IN (SELECT key FROM rally_once WHERE until <= ? ORDER BY until LIMIT 4)',
    )
    this.#find = database.prepare('SELECT note, record FROM rally_once WHERE key = ? AND until > ?')
    this.#take = database.prepare('INSERT OR REPLACE INTO rally_once VALUES (?, ?, ?, ?, NULL)')
    const mine = 'WHERE key = ? AND fence = ? AND record IS NULL'
    this.#renew = database.prepare(`UPDATE rally_once SET until = ? ${mine}`)
    this.#settle = database.prepare(`UPDATE rally_once SET record = ?, until = ? ${mine}`)
    this.#release = database.prepare(`DELETE FROM rally_once ${mine}`)
  }

  claim(key: string, note: string, leaseMs: number): Promise<OnceClaim> {
    return this.#turn.write(() => {
      const now = this.#now()
      this.#forget.run([now])
      const [held] = this.#find.all([toPlain(key), now]) as Row[]
      if (held !== undefined) {
        const left = fromPlain(held.note)
        return held.record === null
          ? { kind: 'held', note: left }
          : { kind: 'settled', note: left, record: fromPlain(held.record) }
      }
      const fence = randomUUID()
      this.#take.run([toPlain(key), toPlain(note), fence, now + leaseMs])
      return { kind: 'yours', fence }
    })
  }

  renew(key: string, fence: string, leaseMs: number): Promise<boolean> {
    return this.#turn.write(() => this.#renew.run([this.#now() + leaseMs, toPlain(key), toPlain(fence)]).changes > 0)
  }

  settle(key: string, fence: string, record: string, keepMs: number): Promise<boolean> {
    return this.#turn.write(() => {
      const until = this.#now() + keepMs
      return this.#settle.run([toPlain(record), until, toPlain(key), toPlain(fence)]).changes > 0
    })
  }

  async release(key: string, fence: string): Promise<void> {
    await this.#turn.write(() => this.#release.run([toPlain(key), toPlain(fence)]))
  }
}
