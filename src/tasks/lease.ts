// A task that this worker has taken up: its state as the worker knows it, and every write that rests on the claim.
//
// Writes follow each other, and each stands on the version that the one before made or read: what others wrote in between is
// taken in, and never lost.
import type { TaskFlowState } from './state.ts'
import { readState, writeState } from './state.ts'
import type { ClaimedTask, TaskChange, TaskStore } from '../store/tasks.ts'
import { isEnd } from '../store/tasks.ts'

/** Another worker has the task, or it is over. */
export class LeaseLost extends Error {}

export class Lease {
  readonly #task: ClaimedTask
  readonly #store: TaskStore
  #version: number
  #stateText: string
  /** What the text says, once somebody has looked. */
  #stateRead: TaskFlowState | undefined
  #writing: Promise<unknown> = Promise.resolve()

  constructor(task: ClaimedTask, store: TaskStore) {
    this.#task = task
    this.#store = store
    this.#version = task.version
    this.#stateText = task.state
  }

  get version(): number {
    return this.#version
  }

  get state(): TaskFlowState {
    return (this.#stateRead ??= readState(this.#stateText))
  }

  /**
   * Changes the state as it stands then; `make` is asked again where it has changed meanwhile. `written` is called before anything
   * else is written, and told whether there was something of others to take in.
   */
  change(make: (state: TaskFlowState) => TaskChange, written: (isNewer: boolean) => void): Promise<void> {
    return this.#next(async () => {
      for (let isNewer = false; ; isNewer = true) {
        const { state } = this
        // Changed from here on, whether or not the store takes it.
        this.#stateRead = undefined
        const change = make(state)
        const text = writeState(state)
        const { id, fence } = this.#task
        const version = await this.#store.change(id, { fence, version: this.#version }, { ...change, state: text })
        if (version !== undefined) {
          this.#version = version
          this.#stateText = text
          this.#stateRead = state
          return written(isNewer)
        }
        await this.#takeIn()
      }
    })
  }

  append(entries: string): Promise<void> {
    return this.#next(async () => {
      if (!(await this.#store.append(this.#task, entries))) throw new LeaseLost()
    })
  }

  /** Whatever has come meanwhile is too late. */
  end(makeEnding: () => TaskChange): Promise<void> {
    return this.#next(async () => {
      const { id, fence } = this.#task
      if ((await this.#store.change(id, { fence }, makeEnding())) === undefined) throw new LeaseLost()
    })
  }

  /** Takes in what others have written, up to this version at least. */
  catchUp(version: number): Promise<void> {
    return this.#next(async () => {
      // It may have been a change of our own that was heard of.
      if (version > this.#version) await this.#takeIn()
    })
  }

  /** Only answers come in between: whatever else has changed, the task is not ours any more. */
  async #takeIn(): Promise<void> {
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
