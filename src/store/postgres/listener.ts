// Receives the events of other instances through LISTEN, on one connection for all watchers.
//
// 1. Events are missed while the connection is down. So when it is up again, every watcher is called, to look for itself.
// 2. It does not keep the process alive. When the database is away, it reconnects with backoff.
import { hash } from 'node:crypto'
import type { Backoff } from '../../protocol/backoff.ts'
import { backoff } from '../../protocol/backoff.ts'
import type { TaskEvent } from '../tasks.ts'
import { KeyedWatchers, Watchers } from '../watchers.ts'
import type { PostgresDatabase } from './database.ts'
import type { ConnectionLike } from './pool.ts'
import { fromText } from './text.ts'

/** With jitter, so that not all instances reconnect together after the database restarts. */
const RECONNECT: Backoff = { firstMs: 100, maxMs: 10_000, jitter: [0.5, 1] }
/** How often the connection is checked, and how long a check may take. */
const CHECK_MS = 30_000
const CHECK_TIMEOUT_MS = 10_000

/**
 * The first character of a NOTIFY payload. After `mailbox` follows the digest of the channel. After `changed` and `changedAndDue` follow
 * the version, a space and the task's id.
 */
export const signals = { due: 'd', changed: 'c', changedAndDue: 'b', mailbox: 'm' } as const

export class Listener {
  /** The PostgreSQL channel of NOTIFY and LISTEN. */
  readonly channel: string
  readonly #database: PostgresDatabase
  readonly #tasks = new Watchers<TaskEvent>()
  readonly #mailbox = new KeyedWatchers()
  #isStarted = false
  #isClosed = false
  #connection: ConnectionLike | undefined
  #endPause: (() => void) | undefined

  constructor(database: PostgresDatabase) {
    this.#database = database
    this.channel = `rally_${hash('sha256', database.schema, 'hex').slice(0, 32)}`
  }

  watchTasks(listener: (event: TaskEvent) => void): () => void {
    const remove = this.#tasks.add(listener)
    this.#start()
    return remove
  }

  /** Watches a channel of the mailbox, by its digest. */
  watchMailbox(digest: string, arrived: () => void): () => void {
    const remove = this.#mailbox.add(digest, arrived)
    this.#start()
    return remove
  }

  close(): void {
    this.#isClosed = true
    this.#endPause?.()
    this.#drop(this.#connection)
  }

  #start(): void {
    if (this.#isStarted || this.#isClosed) return
    this.#isStarted = true
    void this.#listen()
  }

  async #listen(): Promise<void> {
    for (let tries = 1; !this.#isClosed; tries += 1) {
      try {
        const connection = await this.#database.connect()
        const lost = this.#receive(connection)
        try {
          await connection.query({ text: `LISTEN "${this.channel}"` })
          tries = 1
          this.#notifyAll()
          await lost
        } finally {
          this.#drop(connection)
        }
      } catch {
        // Queries report that the database is away. Here it is enough to try again.
      }
      if (!this.#isClosed) await this.#pause(backoff(tries, RECONNECT))
    }
  }

  /** Resolves when the connection is lost. */
  #receive(connection: ConnectionLike): Promise<void> {
    this.#connection = connection
    connection.unref?.()
    return new Promise((resolve) => {
      const checks = setInterval(() => {
        connection.query({ text: 'SELECT 1', query_timeout: CHECK_TIMEOUT_MS }).catch(lost)
      }, CHECK_MS).unref()
      function lost(): void {
        clearInterval(checks)
        resolve()
      }
      connection.on('notification', ({ payload }) => this.#notify(payload ?? ''))
      connection.on('error', lost)
      connection.on('end', lost)
      if (this.#isClosed) lost()
    })
  }

  #drop(connection: ConnectionLike | undefined): void {
    if (connection === undefined || connection !== this.#connection) return
    this.#connection = undefined
    connection.release(true)
  }

  #notify(payload: string): void {
    const [signal, rest] = [payload[0], payload.slice(1)]
    if (signal === signals.mailbox) return this.#mailbox.notify(rest)
    if (signal === signals.changed || signal === signals.changedAndDue) {
      const [version = ''] = rest.split(' ', 1)
      const id = fromText(rest.slice(version.length + 1))
      this.#tasks.notify({ type: 'changed', id, version: Number(version) })
    }
    if (signal === signals.due || signal === signals.changedAndDue) this.#tasks.notify({ type: 'due' })
  }

  #notifyAll(): void {
    this.#tasks.notify({ type: 'due' })
    this.#mailbox.notifyAll()
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms).unref()
      this.#endPause = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
