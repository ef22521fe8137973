// What others have put into the state of a task that runs: answers that a pass has not been given yet, and since when they are there.
import type { Answers } from '../flow/answering.ts'
import type { TaskFlowState } from './state.ts'

export class Inbox {
  /** Keys of answers that a pass was given and that the store still holds. */
  readonly #delivered = new Set<string>()
  readonly #receivedAt = new Map<string, number>()

  /** The answers that no pass was given yet. */
  take(state: TaskFlowState): Answers {
    const answers = Object.create(null) as Record<string, Record<string, unknown>>
    for (const [key, { raw, at }] of Object.entries(state.answers)) {
      if (this.#delivered.has(key)) continue
      answers[key] = raw
      if (at !== undefined) this.#receivedAt.set(key, at)
      this.#delivered.add(key)
    }
    return answers
  }

  /** When the answer to this question was received. */
  receivedAt(key: string): number | undefined {
    return this.#receivedAt.get(key)
  }

  get deliveredKeys(): string[] {
    return [...this.#delivered]
  }

  /** The effects of these answers are in the store, and the answers are not any more. */
  used(keys: readonly string[]): void {
    for (const key of keys) this.#delivered.delete(key)
  }
}
