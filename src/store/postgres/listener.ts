// Sends the events of this instance with NOTIFY, and receives those of others through LISTEN, on one connection for all watchers.
//
// 1. Events are missed while the connection is down. So when it is up again, every watcher is called, to look for itself.
// 2. It does not keep the process alive. When the database is away, it reconnects with backoff.
// 3. An event is sent after its write is committed, by a statement of its own. A commit that notifies holds a lock of the whole
//    database until it is on the disk, so a write must not. If the process dies in between, the event is lost: the others poll.
// 4. The watchers of this instance do not wait for the database.
//
// With `notify: 'poll'` it neither sends nor listens. The watchers of a mailbox are called every second. Those of tasks poll themselves.
import { hash } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { Backoff } from '../../protocol/backoff.ts'
import { backoff } from '../../protocol/backoff.ts'
import type { TaskEvent } from '../tasks.ts'
import { KeyedWatchers, Watchers } from '../watchers.ts'
import { namedQuery, type NamedQuery, type PostgresDatabase } from './database.ts'
import { packSignals, SignalQueue, unpackSignals, type StoreSignal } from './signals.ts'
import type { ConnectionLike, QueryLike, RowsLike } from './pool.ts'

/** With jitter, so that not all instances reconnect together after the database restarts. */
const RECONNECT: Backoff = { firstMs: 100, maxMs: 10_000, jitter: [0.5, 1] }
/** How often the connection is checked, and how long a check may take. */
const CHECK_MS = 30_000
/** For each query on the connection that listens. */
const QUERY_TIMEOUT_MS = 10_000
/** Events within this time go together, except the first. */
const SEND_EVERY_MS = 20
/** With jitter, so that instances do not poll in step. */
const POLL: Backoff = { firstMs: 1_000, jitter: [0.75, 1.25] }
/** How long `close` waits for events that are not sent yet. */
const CLOSE_MS = 1_000

export class Listener {
  /** The PostgreSQL channel of NOTIFY and LISTEN. */
  readonly channel: string
  readonly #database: PostgresDatabase
  readonly #send: NamedQuery
  readonly #tasks = new Watchers<TaskEvent>()
  readonly #mailbox = new KeyedWatchers()
  #isStarted = false
  #isClosed = false
  #connection: ConnectionLike | undefined
  /** The id of the server process of that connection, once it listens. */
  #processId: unknown
  #lastAsked: Promise<unknown> = Promise.resolve()
  readonly #unsent = new SignalQueue()
  #sending: Promise<void> | undefined
  #endPause: (() => void) | undefined

  constructor(database: PostgresDatabase) {
    this.#database = database
    this.channel = `rally_${hash('sha256', database.schema, 'hex').slice(0, 32)}`
    // If the server crashes before it has written such a commit, all connections are gone with it: nobody would have received it.
    this.#send = namedQuery(`
      SELECT pg_notify('${this.channel}', text)
      FROM unnest($1::text[]) AS text CROSS JOIN (SELECT set_config('synchronous_commit', 'off', true)) AS setting`)
  }

  /** Tells the watchers of this and of other instances. Call it when the write has been committed. */
  send(signals: readonly StoreSignal[]): void {
    if (this.#isClosed || signals.length === 0) return
    // After the caller of the write has learned of it.
    setImmediate(() => {
      for (const signal of signals) this.#notify(signal)
    })
    if (this.#database.notify === 'poll') return
    for (const signal of signals) this.#unsent.add(signal)
    this.#sending ??= this.#sendAll()
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

  /** Sends what is not sent yet, if the database takes it in time. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#endPause?.()
    if (this.#sending !== undefined)
      await Promise.race([this.#sending, setTimeout(CLOSE_MS, undefined, { ref: false })])
    this.#drop(this.#connection)
  }

  async #sendAll(): Promise<void> {
    while (this.#unsent.size > 0) {
      const values = [packSignals(this.#unsent.take())]
      try {
        // On the connection that listens, so that this instance can tell its own events.
        const query = { ...this.#send, values }
        if (this.#processId !== undefined && this.#connection !== undefined) await this.#ask(this.#connection, query)
        else await this.#database.run(this.#send, values)
      } catch {
        // The others poll. Queries report that the database is away.
      }
      if (!this.#isClosed) await setTimeout(SEND_EVERY_MS, undefined, { ref: false })
    }
    this.#sending = undefined
  }

  #start(): void {
    if (this.#isStarted || this.#isClosed) return
    this.#isStarted = true
    void (this.#database.notify === 'poll' ? this.#poll() : this.#listen())
  }

  async #poll(): Promise<void> {
    while (!this.#isClosed) {
      await this.#pause(backoff(1, POLL))
      this.#mailbox.notifyAll()
    }
  }

  async #listen(): Promise<void> {
    for (let tries = 1; !this.#isClosed; tries += 1) {
      try {
        const connection = await this.#database.connect()
        const lost = this.#receive(connection)
        try {
          await this.#ask(connection, { text: `LISTEN "${this.channel}"` })
          const { rows } = await this.#ask(connection, { text: 'SELECT pg_backend_pid() AS id' })
          this.#processId = rows[0]?.['id']
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
        this.#ask(connection, { text: 'SELECT 1' }).catch(lost)
      }, CHECK_MS).unref()
      function lost(): void {
        clearInterval(checks)
        resolve()
      }
      connection.on('notification', ({ payload, processId }) => {
        // Its own watchers have been told already.
        if (processId !== undefined && processId === this.#processId) return
        for (const signal of unpackSignals(payload)) this.#notify(signal)
      })
      connection.on('error', lost)
      connection.on('end', lost)
      if (this.#isClosed) lost()
    })
  }

  /** A connection takes one query at a time. */
  #ask(connection: ConnectionLike, query: QueryLike): Promise<RowsLike> {
    const asked = this.#lastAsked.then(() => connection.query({ ...query, query_timeout: QUERY_TIMEOUT_MS }))
    this.#lastAsked = asked.catch(() => undefined)
    return asked
  }

  #drop(connection: ConnectionLike | undefined): void {
    if (connection === undefined || connection !== this.#connection) return
    this.#connection = undefined
    this.#processId = undefined
    connection.release(true)
  }

  #notify(signal: StoreSignal): void {
    if (signal.type === 'mail') this.#mailbox.notify(signal.channel)
    else this.#tasks.notify(signal)
  }

  #notifyAll(): void {
    this.#tasks.notify({ type: 'due' })
    this.#mailbox.notifyAll()
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = globalThis.setTimeout(resolve, ms).unref()
      this.#endPause = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
