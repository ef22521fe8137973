// A mailbox in SQLite.
import type { StoredEvent, Mailbox } from '../mailbox.ts'
import { Watchers } from '../watchers.ts'
import { fromPlain, toPlain } from '../plain-text.ts'
import type { Database, Statement } from './driver.ts'
import type { Others } from './external-writes.ts'
import type { Turn } from './group-commit.ts'

export class SqliteMailbox implements Mailbox {
  readonly #turn: Turn
  readonly #others: Others
  readonly #now: () => number
  readonly #watchers = new Map<string, Watchers<void>>()
  readonly #forget: Statement
  readonly #drop: Statement
  readonly #leave: Statement
  readonly #after: Statement
  readonly #last: Statement
  readonly #arrived: Statement
  /** The last arrival that has been told of. */
  #told = 0
  #unfollow: (() => void) | undefined

  constructor(database: Database, turn: Turn, others: Others, now: () => number) {
    this.#turn = turn
    this.#others = others
    this.#now = now
    // A few with every letter that is left: what is over goes as fast as new ones come.
    this.#forget = database.prepare(
      'DELETE FROM rally_letter WHERE arrival IN (SELECT arrival FROM rally_letter WHERE until <= ? ORDER BY until LIMIT 4)',
    )
    this.#drop = database.prepare('DELETE FROM rally_letter WHERE box = ? AND number = ? AND until <= ?')
    this.#leave = database.prepare(
      'INSERT INTO rally_letter (box, number, text, until) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
    )
    this.#after = database.prepare(
      'SELECT number, text FROM rally_letter WHERE box = ? AND number > ? AND until > ? ORDER BY number',
    )
    this.#last = database.prepare(`SELECT seq AS last FROM sqlite_sequence WHERE name = 'rally_letter'`)
    this.#arrived = database.prepare(
      'SELECT arrival, box FROM rally_letter WHERE arrival > ? ORDER BY arrival LIMIT 1000',
    )
  }

  async leave(box: string, number: number, text: string, keepMs: number): Promise<boolean> {
    const isFirst = await this.#turn.write(() => {
      const now = this.#now()
      const name = toPlain(box)
      this.#forget.run([now])
      this.#drop.run([name, number, now])
      return this.#leave.run([name, number, toPlain(text), now + keepMs]).changes > 0
    })
    if (isFirst) this.#watchers.get(box)?.tell()
    return isFirst
  }

  after(box: string, number: number): Promise<StoredEvent[]> {
    return this.#turn.read(() => {
      const rows = this.#after.all([toPlain(box), number, this.#now()]) as StoredEvent[]
      return rows.map((row) => ({ number: row.number, text: fromPlain(row.text) }))
    })
  }

  watch(box: string, arrived: () => void): () => void {
    if (this.#unfollow === undefined) {
      const [row] = this.#last.all([]) as { last: number }[]
      this.#told = row?.last ?? 0
      this.#unfollow = this.#others.follow(() => this.#tellNew())
    }
    const watchers = this.#watchers.get(box) ?? new Watchers<void>()
    this.#watchers.set(box, watchers)
    const stop = watchers.add(arrived)
    return () => {
      stop()
      if (watchers.size === 0 && this.#watchers.get(box) === watchers) this.#watchers.delete(box)
      if (this.#watchers.size > 0) return
      this.#unfollow?.()
      this.#unfollow = undefined
    }
  }

  #tellNew(): void {
    for (;;) {
      const letters = this.#arrived.all([this.#told]) as { arrival: number; box: string }[]
      for (const box of new Set(letters.map((letter) => fromPlain(letter.box)))) this.#watchers.get(box)?.tell()
      const last = letters.at(-1)
      if (last === undefined) return
      this.#told = last.arrival
    }
  }
}
