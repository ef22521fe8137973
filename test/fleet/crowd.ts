// Many flows at once, and what became of each.
import { Flow } from './flow.ts'

export class Crowd {
  readonly flows: readonly Flow[]
  readonly results = new Map<number, string>()
  /** What a client was told that it should not have been. */
  readonly errors: unknown[] = []
  readonly #begun: Promise<void>[] = []
  readonly #finished: Promise<void>[] = []
  #next = 0

  constructor(size: number, stepsEachSide: number, url: string) {
    this.flows = Array.from({ length: size }, (_, id) => new Flow(id, stepsEachSide, url))
  }

  /** Begins so many more of them. Gives their ids. */
  begin(count: number): ReadonlySet<number> {
    const begun = this.flows.slice(this.#next, this.#next + count)
    this.#next += begun.length
    this.#begun.push(...begun.map((flow) => this.#noting(flow.begin())))
    return new Set(begun.map(({ id }) => id))
  }

  /** Resolves once all that have begun are at their question. */
  async atQuestion(): Promise<void> {
    await Promise.all(this.#begun)
  }

  /** Answers the questions of these. Gives their ids. */
  answer(flows: readonly Flow[]): ReadonlySet<number> {
    const finish = async (flow: Flow): Promise<void> => void this.results.set(flow.id, await flow.finish())
    this.#finished.push(...flows.map((flow) => this.#noting(finish(flow))))
    return new Set(flows.map(({ id }) => id))
  }

  /** Resolves once all that were answered have come to their end. */
  async done(): Promise<void> {
    await Promise.all(this.#finished)
  }

  /** The flows whose result is not what it should be. */
  get wrong(): { id: number; result: string | undefined }[] {
    return this.flows
      .filter(({ id, expected }) => this.results.get(id) !== expected)
      .map(({ id }) => ({ id, result: this.results.get(id) }))
  }

  async #noting(going: Promise<void>): Promise<void> {
    try {
      await going
    } catch (error) {
      this.errors.push(error)
    }
  }
}
