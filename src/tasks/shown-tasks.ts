// The tasks whose questions this instance has just shown to their callers. The answers often come to the same instance. They are written
// against the version that was shown, which saves reading the task again. If that has changed meanwhile, the write fails, and the task
// is read.
import type { TaskRecord } from '../store/tasks.ts'

/** What is needed to change a task. */
export type ChangeableTask = Pick<TaskRecord, 'id' | 'owner' | 'version' | 'state'>

const MAX_TASKS = 1_000
/** The state of a task that waits for an answer has about 300 characters. */
const MAX_STATE_LENGTH = 4_096

export class ShownTasks {
  /** The oldest first. */
  readonly #tasks = new Map<string, ChangeableTask>()

  add({ id, owner, version, state, status }: TaskRecord): void {
    if (status !== 'input_required' || state.length > MAX_STATE_LENGTH) return
    this.#tasks.delete(id)
    this.#tasks.set(id, { id, owner, version, state })
    if (this.#tasks.size <= MAX_TASKS) return
    const [oldest = ''] = this.#tasks.keys()
    this.#tasks.delete(oldest)
  }

  /** The task as it was shown, once. */
  take(id: string, owner: string): ChangeableTask | undefined {
    const task = this.#tasks.get(id)
    if (task?.owner !== owner) return undefined
    this.#tasks.delete(id)
    return task
  }
}
