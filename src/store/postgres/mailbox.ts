// Messages for clients that come back on any instance of the fleet.
import { hash } from 'node:crypto'
import type { StoredEvent, Mailbox } from '../mailbox.ts'
import { NOW, statement, type Database, type Statement } from './database.ts'
import { signals, type Listening } from './listener.ts'
import { Sweeping } from './sweeper.ts'
import { asName, fromText, toName, toSpan, toText } from './texts.ts'

export class PostgresMailbox implements Mailbox {
  readonly #database: Database
  readonly #listening: Listening
  readonly #sweeping: Sweeping
  readonly #leave: Statement
  readonly #after: Statement

  constructor(database: Database, listening: Listening) {
    const table = `${database.schema}.letters`
    this.#database = database
    this.#listening = listening
    this.#sweeping = new Sweeping(database, 'letters', ['box', 'number'])
    this.#leave = statement(`
      WITH first AS (
        INSERT INTO ${table} AS l (box, number, text, expires_at) VALUES ($1, $2, $3, ${NOW} + $4::bigint)
        ON CONFLICT (box, number) DO UPDATE SET text = excluded.text, expires_at = excluded.expires_at
          WHERE l.expires_at <= ${NOW}
        RETURNING 1
      )
      SELECT pg_notify('${listening.channel}', $5) FROM first`)
    this.#after = statement(`
      SELECT number, text FROM ${table} WHERE box = $1 AND number > $2 AND expires_at > ${NOW} ORDER BY number`)
  }

  async leave(box: string, number: number, text: string, keepMs: number): Promise<boolean> {
    const values = [toName('box', box), number, toText('message', text), toSpan(keepMs), signals.letter + signOf(box)]
    this.#sweeping.count()
    return (await this.#database.run(this.#leave, values)).length > 0
  }

  async after(box: string, number: number): Promise<StoredEvent[]> {
    const name = asName(box)
    if (name === undefined) return []
    const rows = await this.#database.run(this.#after, [name, number])
    return rows.map((row) => ({ number: Number(row['number']), text: fromText(row['text']) }))
  }

  watch(box: string, arrived: () => void): () => void {
    return this.#listening.watchBox(signOf(box), arrived)
  }

  /** Throws away what nobody came for in time, a bounded number at a time. */
  sweep(): Promise<number> {
    return this.#sweeping.sweep()
  }
}

/** A box may have a long name, and what everybody listens to should be short. */
function signOf(box: string): string {
  return hash('sha256', box, 'base64url').slice(0, 22)
}
