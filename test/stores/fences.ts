// Numbers the fences of each task from 1 on, so that stores can be compared: their fences grow, but each store has its own.
import type { ClaimedTask, TaskLease, TaskRecord, TaskStore } from '../../src/store/tasks.ts'

/** Stands for a fence that no claim has. */
const UNKNOWN_FENCE = Number.MAX_SAFE_INTEGER

interface Life {
  readonly createdAt: number
  readonly fences: number[]
}

export class Fences {
  readonly #lives = new Map<string, Life>()

  /** The same store, with these numbers in place of its fences. */
  numbered(tasks: TaskStore): TaskStore {
    return {
      create: async (task) => this.#created(await tasks.create(task)),
      read: (id) => tasks.read(id),
      versions: (ids) => tasks.versions(ids),
      list: (owner, limit, after) => tasks.list(owner, limit, after),
      claim: async (request) => this.#claimed(await tasks.claim(request)),
      renew: async (leases, leaseMs) => {
        const renewed = await tasks.renew(
          leases.map((lease) => this.#real(lease)),
          leaseMs,
        )
        return renewed.map(({ id, fence, version }) => ({ id, fence: this.#fencesOf(id).indexOf(fence) + 1, version }))
      },
      append: (lease, entries) => tasks.append(this.#real(lease), entries),
      change: (id, { fence, ...precondition }, change) =>
        tasks.change(
          id,
          fence === undefined ? precondition : { ...precondition, fence: this.#real({ id, fence }).fence },
          change,
        ),
      usage: (owner) => tasks.usage(owner),
      sweep: () => tasks.sweep(),
      watch: (listener) => tasks.watch(listener),
    }
  }

  /** A task that is created again has new numbers. */
  #created(task: TaskRecord): TaskRecord {
    const { id, createdAt } = task
    if (this.#lives.get(id)?.createdAt !== createdAt) this.#lives.set(id, { createdAt, fences: [] })
    return task
  }

  #claimed(task: ClaimedTask | undefined): ClaimedTask | undefined {
    if (task === undefined) return undefined
    const fences = this.#fencesOf(task.id)
    if (task.fence <= (fences.at(-1) ?? 0)) throw new Error('A fence is not higher than the one before.')
    return { ...task, fence: fences.push(task.fence) }
  }

  #real({ id, fence }: TaskLease): TaskLease {
    return { id, fence: this.#fencesOf(id)[fence - 1] ?? UNKNOWN_FENCE }
  }

  #fencesOf(id: string): number[] {
    return this.#lives.get(id)?.fences ?? []
  }
}
