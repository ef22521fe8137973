// The fences of a task numbered from 1 on as it is claimed: what a fence is, beyond being never given twice, is a store's own affair.
import type { ClaimedTask, TaskLease, TaskRecord, TaskStore } from '../../src/store/tasks.ts'

/** What stands in for a fence that was never given. */
const NEVER_GIVEN = Number.MAX_SAFE_INTEGER

interface Life {
  readonly createdAt: number
  readonly fences: number[]
}

export class Fences {
  readonly #lives = new Map<string, Life>()

  /** The handle, asked and answering by these numbers. */
  numbered(tasks: TaskStore): TaskStore {
    return {
      create: async (task) => this.#made(await tasks.create(task)),
      read: (id) => tasks.read(id),
      list: (owner, limit, after) => tasks.list(owner, limit, after),
      claim: async (turn) => this.#claimed(await tasks.claim(turn)),
      renew: async (held, leaseMs) => {
        const standing = await tasks.renew(
          held.map((each) => this.#given(each)),
          leaseMs,
        )
        return standing.map(({ id, fence, version }) => ({ id, fence: this.#fencesOf(id).indexOf(fence) + 1, version }))
      },
      append: (held, entries) => tasks.append(this.#given(held), entries),
      change: (id, { fence, ...belief }, change) =>
        tasks.change(id, fence === undefined ? belief : { ...belief, fence: this.#given({ id, fence }).fence }, change),
      sweep: () => tasks.sweep(),
      watch: (listener) => tasks.watch(listener),
    }
  }

  /** A task that is made again begins anew. */
  #made(task: TaskRecord): TaskRecord {
    const { id, createdAt } = task
    if (this.#lives.get(id)?.createdAt !== createdAt) this.#lives.set(id, { createdAt, fences: [] })
    return task
  }

  #claimed(task: ClaimedTask | undefined): ClaimedTask | undefined {
    return task && { ...task, fence: this.#fencesOf(task.id).push(task.fence) }
  }

  #given({ id, fence }: TaskLease): TaskLease {
    return { id, fence: this.#fencesOf(id)[fence - 1] ?? NEVER_GIVEN }
  }

  #fencesOf(id: string): number[] {
    return this.#lives.get(id)?.fences ?? []
  }
}
