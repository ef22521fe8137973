// A mailbox in SQLite. The table `rally_letter` has an event in each row; its column `box` is the channel.
import type { Mailbox, StoredEvent } from '../mailbox.ts'
import { KeyedWatchers } from '../watchers.ts'
import { ChangeFeed } from './change-feed.ts'
import type { SqliteStatement } from './driver.ts'
import type { SqliteFile } from './file.ts'
import type { GroupCommit } from './group-commit.ts'
import { fromPlain, toPlain } from './text.ts'

export class SqliteMailbox implements Mailbox {
  readonly #commits: GroupCommit
  readonly #now: () => number
  readonly #watchers = new KeyedWatchers()
  readonly #feed: ChangeFeed
  readonly #sweep: SqliteStatement
  readonly #dropExpired: SqliteStatement
  readonly #leave: SqliteStatement
  readonly #after: SqliteStatement
  readonly #last: SqliteStatement
  readonly #arrived: SqliteStatement

  constructor({ database, commits, externalWrites, now }: SqliteFile) {
    this.#commits = commits
    this.#now = now
    // A few with every event, so that rows expire as fast as new ones are added.
    this.#sweep = database.prepare(
      'DELETE FROM rally_letter WHERE arrival IN (SELECT arrival FROM rally_letter WHERE until <= ? ORDER BY until LIMIT 4)',
    )
    this.#dropExpired = database.prepare('DELETE FROM rally_letter WHERE box = ? AND number = ? AND until <= ?')
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
    this.#feed = new ChangeFeed(externalWrites, {
      last: () => (this.#last.all([]) as { last: number }[])[0]?.last ?? 0,
      report: (after) => this.#report(after),
    })
  }

  async leave(channel: string, number: number, text: string, keepMs: number): Promise<boolean> {
    const isFirst = await this.#commits.write(() => {
      const now = this.#now()
      const name = toPlain(channel)
      this.#sweep.run([now])
      this.#dropExpired.run([name, number, now])
      return this.#leave.run([name, number, toPlain(text), now + keepMs]).changes > 0
    })
    if (isFirst) this.#watchers.notify(channel)
    return isFirst
  }

  after(channel: string, number: number): Promise<StoredEvent[]> {
    return this.#commits.read(() => {
      const rows = this.#after.all([toPlain(channel), number, this.#now()]) as StoredEvent[]
      return rows.map((row) => ({ number: row.number, text: fromPlain(row.text) }))
    })
  }

  watch(channel: string, arrived: () => void): () => void {
    this.#feed.start()
    const remove = this.#watchers.add(channel, arrived)
    return () => {
      remove()
      if (this.#watchers.size === 0) this.#feed.stop()
    }
  }

  #report(after: number): number | undefined {
    const rows = this.#arrived.all([after]) as { arrival: number; box: string }[]
    for (const channel of new Set(rows.map((row) => fromPlain(row.box)))) this.#watchers.notify(channel)
    return rows.at(-1)?.arrival
  }
}
