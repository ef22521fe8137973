// A mailbox in PostgreSQL. The table `letters` has an event in each row; its column `box` is the channel.
import { hash } from 'node:crypto'
import type { Mailbox, StoredEvent } from '../mailbox.ts'
import { namedQuery, NOW, type NamedQuery, type PostgresDatabase } from './database.ts'
import type { Listener } from './listener.ts'
import { Sweeper } from './sweeper.ts'
import { asName, fromText, toName, toSpan, toText } from './text.ts'

export class PostgresMailbox implements Mailbox {
  readonly #database: PostgresDatabase
  readonly #listener: Listener
  readonly #sweeper: Sweeper
  readonly #leave: NamedQuery
  readonly #after: NamedQuery

  constructor(database: PostgresDatabase, listener: Listener) {
    const table = `${database.schema}.letters`
    this.#database = database
    this.#listener = listener
    this.#sweeper = new Sweeper(database, 'letters', ['box', 'number'])
    this.#leave = namedQuery(`
      INSERT INTO ${table} AS l (box, number, text, expires_at) VALUES ($1, $2, $3, ${NOW} + $4::bigint)
      ON CONFLICT (box, number) DO UPDATE SET text = excluded.text, expires_at = excluded.expires_at
        WHERE l.expires_at <= ${NOW}
      RETURNING 1`)
    this.#after = namedQuery(`
      SELECT number, text FROM ${table} WHERE box = $1 AND number > $2 AND expires_at > ${NOW} ORDER BY number`)
  }

  async leave(channel: string, number: number, text: string, keepMs: number): Promise<boolean> {
    const name = toName('name of a mailbox channel', channel)
    const values = [name, number, toText('event', text), toSpan(keepMs)]
    this.#sweeper.countRow()
    const isFirst = (await this.#database.run(this.#leave, values)).length > 0
    if (isFirst) this.#listener.send([{ type: 'mail', channel: digestOf(channel) }])
    return isFirst
  }

  async after(channel: string, number: number): Promise<StoredEvent[]> {
    const name = asName(channel)
    if (name === undefined) return []
    const rows = await this.#database.run(this.#after, [name, number])
    return rows.map((row) => ({ number: Number(row['number']), text: fromText(row['text']) }))
  }

  watch(channel: string, arrived: () => void): () => void {
    return this.#listener.watchMailbox(digestOf(channel), arrived)
  }

  /** Deletes expired events, a bounded number per call. */
  sweep(): Promise<number> {
    return this.#sweeper.sweep()
  }
}

/** Short, because every instance receives it. The name of a channel may be long. */
function digestOf(channel: string): string {
  return hash('sha256', channel, 'base64url').slice(0, 22)
}
