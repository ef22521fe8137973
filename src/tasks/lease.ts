// A worker's lease on a task: the state as the worker knows it, and every write under the claim.
//
// Writes run one after the other. Each is made against the version that the write before it produced or read, so what others
// wrote in between is read first and never lost.
import type { TaskFlowState } from './state.ts'
import { readState, writeState } from './state.ts'
import type { ClaimedTask, TaskChange, TaskStore } from '../store/tasks.ts'
import { isEnd } from '../store/tasks.ts'

/** Another worker has the task, or the task has ended. */
export class LeaseLost extends Error {}

export class Lease {
  readonly #task: ClaimedTask
  readonly #store: TaskStore
  readonly #now: () => number
  #version: number
  #knownAt: number
  #stateText: string
  /** The parsed text, once it was needed. */
  #stateRead: TaskFlowState | undefined
  #writing: Promise<unknown> = Promise.resolve()

  constructor(task: ClaimedTask, store: TaskStore, now: () => number) {
    this.#task = task
    this.#store = store
    this.#now = now
    this.#version = task.version
    this.#knownAt = now()
    this.#stateText = task.state
  }

  get version(): number {
    return this.#version
  }

  /** Until when the state includes all that others wrote, in milliseconds since 1970. */
  get knownAt(): number {
    return this.#knownAt
  }

  get state(): TaskFlowState {
    return (this.#stateRead ??= readState(this.#stateText))
  }

  /**
   * Changes the latest state. Calls `make` again if others have changed the state meanwhile. Calls `written` before the next write,
   * with true if there was such a change.
   */
  change(make: (state: TaskFlowState) => TaskChange, written: (isNewer: boolean) => void): Promise<void> {
    return this.#next(async () => {
      for (let isNewer = false; ; isNewer = true) {
        const { state } = this
        // `make` changes this object even if the store rejects the write, so it must be read again.
        this.#stateRead = undefined
        const change = make(state)
        const text = writeState(state)
        const { id, fence } = this.#task
        const now = this.#now()
        const version = await this.#store.change(id, { fence, version: this.#version }, { ...change, state: text })
        if (version !== undefined) {
          this.#version = version
          this.#knownAt = now
          this.#stateText = text
          this.#stateRead = state
          return written(isNewer)
        }
        await this.#reload()
      }
    })
  }

  append(entries: string): Promise<void> {
    return this.#next(async () => {
      if (!(await this.#store.append(this.#task, entries))) throw new LeaseLost()
    })
  }

  /** Ends the task. What arrived meanwhile is too late, except for a state that is kept for a retry. */
  end(makeEnding: (state: TaskFlowState) => TaskChange): Promise<void> {
    return this.#next(async () => {
      for (;;) {
        const { state } = this
        this.#stateRead = undefined
        const change = makeEnding(state)
        const { id, fence } = this.#task
        const isKept = change.keepMs !== undefined
        const version = await this.#store.change(id, isKept ? { fence, version: this.#version } : { fence }, change)
        if (version !== undefined) {
          this.#version = version
          return
        }
        if (!isKept) throw new LeaseLost()
        await this.#reload()
      }
    })
  }

  /** Reads what others have written, up to this version at least. */
  catchUp(version: number): Promise<void> {
    return this.#next(async () => {
      // The version may be that of a change of our own.
      if (version > this.#version) await this.#reload()
    })
  }

  /** Reads what others have written until now. */
  refresh(): Promise<void> {
    return this.#next(async () => {
      const now = this.#now()
      const [latest] = await this.#store.versions([this.#task.id])
      if (latest?.version !== this.#version) await this.#reload()
      this.#knownAt = now
    })
  }

  /** While the lease is valid, others only add answers. After any other change, the lease is lost. */
  async #reload(): Promise<void> {
    const record = await this.#store.read(this.#task.id)
    if (record === undefined || isEnd(record.status) || record.version === this.#version) throw new LeaseLost()
    this.#version = record.version
    this.#stateText = record.state
    this.#stateRead = undefined
  }

  #next(write: () => Promise<void>): Promise<void> {
    const done = this.#writing.then(write)
    this.#writing = done.catch(() => {})
    return done
  }
}
