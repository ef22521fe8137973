// The callers on this instance that follow tasks: each is called when one of its tasks changes.
//
// However many tasks are followed, and however many of them change at once, they are read in batches, and other work of the event loop
// runs between two batches.
import { setTimeout } from 'node:timers/promises'
import type { Logger } from '../protocol/logger.ts'
import { logUnlessOutage } from '../store/outages.ts'
import type { TaskRecord, TaskStore } from '../store/tasks.ts'
import { isEnd } from '../store/tasks.ts'

interface Follower {
  readonly onTask: (task: TaskRecord) => void
  /** Called when one of its tasks has outlived its ttl. */
  readonly onGone: (() => void) | undefined
  /** The version of each task that it was called with last. */
  readonly versions: Map<string, number>
}

/** The store may miss events, so the versions of followed tasks are also polled. */
const POLL_MS = 5_000
/** How many versions one query reads. */
const POLL_BATCH = 500
/** How many reads begin in one turn. A store in a file has them done within the turn, in a few milliseconds. */
const READS_PER_TURN = 50
const MAX_READING = 100

export class Followers {
  readonly #store: TaskStore
  readonly #logger: Logger
  readonly #byTask = new Map<string, Set<Follower>>()
  /** The tasks that are to be read and reported. */
  readonly #due = new Set<string>()
  #reading = 0
  #readsInTurn = 0
  #isTurnCounted = false
  #unwatch: (() => void) | undefined
  #timer: NodeJS.Timeout | undefined
  #isPolling = false

  constructor(store: TaskStore, logger: Logger) {
    this.#store = store
    this.#logger = logger
  }

  /** Calls `onTask` with each task as it is now, and after every change. Returns a function that stops it. */
  follow(ids: readonly string[], onTask: Follower['onTask'], onGone?: Follower['onGone']): () => void {
    if (ids.length === 0) return () => {}
    const follower: Follower = { onTask, onGone, versions: new Map() }
    this.#watch()
    for (const id of ids) {
      const followers = this.#byTask.get(id) ?? new Set()
      this.#byTask.set(id, followers.add(follower))
      this.#report(id)
    }
    return () => {
      for (const id of ids) {
        const followers = this.#byTask.get(id)
        followers?.delete(follower)
        if (followers?.size === 0) this.#drop(id)
      }
    }
  }

  #report(id: string): void {
    this.#due.add(id)
    this.#readDue()
  }

  /** Starts a few reads in each turn of the event loop. A read that takes long holds up no other. */
  #readDue(): void {
    for (const id of this.#due) {
      if (this.#reading >= MAX_READING || this.#readsInTurn >= READS_PER_TURN) break
      this.#due.delete(id)
      this.#reading += 1
      this.#readsInTurn += 1
      void this.#readAndTell(id).then(() => {
        this.#reading -= 1
        this.#readDue()
      })
    }
    if (this.#readsInTurn === 0 || this.#isTurnCounted) return
    this.#isTurnCounted = true
    setImmediate(() => {
      this.#isTurnCounted = false
      this.#readsInTurn = 0
      this.#readDue()
    })
  }

  async #readAndTell(id: string): Promise<void> {
    if (!this.#byTask.has(id)) return
    try {
      const task = await this.#store.read(id)
      for (const { versions, onTask, onGone } of this.#byTask.get(id) ?? []) {
        if (task === undefined) {
          onGone?.()
          continue
        }
        if ((versions.get(id) ?? -1) >= task.version) continue
        versions.set(id, task.version)
        onTask(task)
      }
      // Nothing more can happen: a task that has ended never changes, and an expired one never comes back.
      if (task === undefined || isEnd(task.status)) this.#drop(id)
    } catch (error) {
      logUnlessOutage(this.#logger, 'Cannot read a task that a client follows. It is read again later.', { error })
    }
  }

  #watch(): void {
    this.#unwatch ??= this.#store.watch((event) => {
      if (event.type === 'changed' && this.#byTask.has(event.id)) this.#report(event.id)
    })
    this.#timer ??= setInterval(() => void this.#poll(), POLL_MS).unref()
  }

  /** Looks for tasks whose version is not the one that all their followers know. Spreads the queries over half of the interval. */
  async #poll(): Promise<void> {
    if (this.#isPolling) return
    this.#isPolling = true
    const ids = [...this.#byTask.keys()]
    const pauseMs = POLL_MS / 2 / Math.ceil(ids.length / POLL_BATCH)
    try {
      for (let from = 0; from < ids.length; from += POLL_BATCH) {
        if (this.#byTask.size === 0) break
        if (from > 0) await setTimeout(pauseMs, undefined, { ref: false })
        const batch = ids.slice(from, from + POLL_BATCH).filter((id) => this.#byTask.has(id))
        if (batch.length === 0) continue
        const versions = new Map((await this.#store.versions(batch)).map(({ id, version }) => [id, version]))
        for (const id of batch) if (!this.#isKnown(id, versions.get(id))) this.#report(id)
      }
    } catch (error) {
      logUnlessOutage(this.#logger, 'Cannot read the versions of tasks that clients follow.', { error })
    }
    this.#isPolling = false
  }

  #isKnown(id: string, version = Infinity): boolean {
    for (const { versions } of this.#byTask.get(id) ?? []) if ((versions.get(id) ?? -1) < version) return false
    return true
  }

  #drop(id: string): void {
    this.#byTask.delete(id)
    this.#due.delete(id)
    if (this.#byTask.size > 0) return
    this.#unwatch?.()
    this.#unwatch = undefined
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
