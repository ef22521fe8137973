// Numbers the fences of each task from 1 on, so that stores can be compared: their fences grow, but each store has its own.
import type { ClaimedTask, TaskLease, TaskPrecondition, TaskRecord, TaskStore } from '../../src/store/tasks.ts'

/** Stands for a fence that no claim has. */
const UNKNOWN_FENCE = Number.MAX_SAFE_INTEGER

interface Life {
  readonly createdAt: number
  readonly fences: number[]
}

export class Fences {
  readonly #lives = new Map<string, Life>()

  /** The same store, with these numbers in place of its fences. */
  numbered(store: TaskStore): Required<TaskStore> {
    // All stores of the package have the methods that are optional.
    const tasks = store as Required<TaskStore>
    return {
      create: async (task) => this.#created(await tasks.create(task)),
      read: (id) => tasks.read(id),
      versions: (ids) => tasks.versions(ids),
      list: (owner, limit, after) => tasks.list(owner, limit, after),
      createAndClaim: async (task, leaseMs) =>
        this.#orClaimed(this.#created(await tasks.createAndClaim(task, leaseMs))),
      claim: async (request) => this.#claimed(await tasks.claim(request)),
      claimMany: async (request, limit) =>
        (await tasks.claimMany(request, limit)).map((task) => this.#orClaimed(task) as ClaimedTask),
      renew: async (leases, leaseMs) => {
        const renewed = await tasks.renew(
          leases.map((lease) => this.#real(lease)),
          leaseMs,
        )
        return renewed.map(({ id, fence, version }) => ({ id, fence: this.#fencesOf(id).indexOf(fence) + 1, version }))
      },
      append: (lease, entries) => tasks.append(this.#real(lease), entries),
      change: (id, precondition, change) => tasks.change(id, this.#realPrecondition(id, precondition), change),
      changeAndClaim: async (id, precondition, change, leaseMs) => {
        const changed = await tasks.changeAndClaim(id, this.#realPrecondition(id, precondition), change, leaseMs)
        return typeof changed === 'object' ? this.#claimed(changed) : changed
      },
      usage: (owner) => tasks.usage(owner),
      sweep: () => tasks.sweep(),
      find: (query) => tasks.find(query),
      inspect: (id) => tasks.inspect(id),
      remove: (ids) => tasks.remove(ids),
      watch: (listener) => tasks.watch(listener),
    }
  }

  /** A task that is created again has new numbers. */
  #created<Created extends TaskRecord>(task: Created): Created {
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

  #orClaimed(task: TaskRecord | ClaimedTask): TaskRecord | ClaimedTask {
    return 'fence' in task ? (this.#claimed(task) ?? task) : task
  }

  #realPrecondition(id: string, { fence, ...others }: TaskPrecondition): TaskPrecondition {
    return fence === undefined ? others : { ...others, fence: this.#real({ id, fence }).fence }
  }

  #real({ id, fence }: TaskLease): TaskLease {
    return { id, fence: this.#fencesOf(id)[fence - 1] ?? UNKNOWN_FENCE }
  }

  #fencesOf(id: string): number[] {
    return this.#lives.get(id)?.fences ?? []
  }
}
