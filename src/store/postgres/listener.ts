// Hears from the other instances through the database, on one connection for all that watch.
//
// 1. What is said while the connection is down is not heard; so once it is up, everybody is called back, to look.
// 2. It keeps no process alive, and a database that is away is tried again, at growing intervals.
import { hash } from 'node:crypto'
import type { Backoff } from '../../protocol/backoff.ts'
import { backoff } from '../../protocol/backoff.ts'
import type { TaskEvent } from '../store.ts'
import { Watchers } from '../watchers.ts'
import type { Database } from './database.ts'
import type { ConnectionLike } from './pool.ts'
import { fromText } from './texts.ts'

/** With jitter, so that not all instances reconnect together after the database restarts. */
const RECONNECT: Backoff = { firstMs: 100, maxMs: 10_000, jitter: [0.5, 1] }
const BEAT_MS = 30_000
const BEAT_TIMEOUT_MS = 10_000

/** What is said begins with one of these. Of a box its sign follows, of a change the version, a space and the task's id. */
export const signals = { due: 'd', changed: 'c', changedAndDue: 'b', letter: 'm' } as const

export class Listening {
  readonly channel: string
  readonly #database: Database
  readonly #tasks = new Watchers<TaskEvent>()
  readonly #boxes = new Map<string, Watchers<void>>()
  #begun = false
  #closed = false
  #connection: ConnectionLike | undefined
  #stopWaiting: (() => void) | undefined

  constructor(database: Database) {
    this.#database = database
    this.channel = `rally_${hash('sha256', database.schema, 'hex').slice(0, 32)}`
  }

  watchTasks(listener: (news: TaskEvent) => void): () => void {
    const stop = this.#tasks.add(listener)
    this.#begin()
    return stop
  }

  watchBox(sign: string, arrived: () => void): () => void {
    const watchers = this.#boxes.get(sign) ?? new Watchers()
    this.#boxes.set(sign, watchers)
    const stop = watchers.add(arrived)
    this.#begin()
    return () => {
      stop()
      if (watchers.size === 0 && this.#boxes.get(sign) === watchers) this.#boxes.delete(sign)
    }
  }

  close(): void {
    this.#closed = true
    this.#stopWaiting?.()
    this.#drop(this.#connection)
  }

  #begin(): void {
    if (this.#begun || this.#closed) return
    this.#begun = true
    void this.#listen()
  }

  async #listen(): Promise<void> {
    for (let tries = 1; !this.#closed; tries += 1) {
      try {
        const connection = await this.#database.connect()
        const lost = this.#hear(connection)
        try {
          await connection.query({ text: `LISTEN "${this.channel}"` })
          tries = 1
          this.#lookAll()
          await lost
        } finally {
          this.#drop(connection)
        }
      } catch {
        // Whoever asks something of the database hears of its trouble. Here it is only tried again.
      }
      if (!this.#closed) await this.#pause(backoff(tries, RECONNECT))
    }
  }

  /** Settles when the connection is lost. */
  #hear(connection: ConnectionLike): Promise<void> {
    this.#connection = connection
    connection.unref?.()
    return new Promise((resolve) => {
      const beat = setInterval(() => {
        connection.query({ text: 'SELECT 1', query_timeout: BEAT_TIMEOUT_MS }).catch(over)
      }, BEAT_MS).unref()
      function over(): void {
        clearInterval(beat)
        resolve()
      }
      connection.on('notification', ({ payload }) => this.#tell(payload ?? ''))
      connection.on('error', over)
      connection.on('end', over)
      if (this.#closed) over()
    })
  }

  #drop(connection: ConnectionLike | undefined): void {
    if (connection === undefined || connection !== this.#connection) return
    this.#connection = undefined
    connection.release(true)
  }

  #tell(payload: string): void {
    const [signal, whom] = [payload[0], payload.slice(1)]
    if (signal === signals.letter) return this.#boxes.get(whom)?.tell()
    if (signal === signals.changed || signal === signals.changedAndDue) {
      const [version = ''] = whom.split(' ', 1)
      const id = fromText(whom.slice(version.length + 1))
      this.#tasks.tell({ type: 'changed', id, version: Number(version) })
    }
    if (signal === signals.due || signal === signals.changedAndDue) this.#tasks.tell({ type: 'due' })
  }

  #lookAll(): void {
    this.#tasks.tell({ type: 'due' })
    for (const watchers of this.#boxes.values()) watchers.tell()
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms).unref()
      this.#stopWaiting = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
