// What others put into the state of a task while a worker runs it: answers and events that no pass was given yet.
import type { Answers } from '../flow/answering.ts'
import type { ReceivedEvent } from '../flow/event-source.ts'
import { unusedEvent } from './events.ts'
import type { TaskEvent, TaskFlowState } from './state.ts'

export class Inbox {
  /** Keys of answers that a pass was given and that the store still holds. */
  readonly #delivered = new Set<string>()
  readonly #receivedAt = new Map<string, number>()
  /** The events that a pass was given, by key. */
  readonly #events = new Map<string, ReceivedEvent>()
  /** Keys of events that the pass waits for. */
  readonly #awaited = new Set<string>()

  /** A new pass waits for nothing yet. */
  begin(): void {
    this.#awaited.clear()
  }

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

  /** The event, if it has come. If not, the pass waits for it from now on. */
  takeEvent(state: TaskFlowState, key: string): ReceivedEvent | undefined {
    const event = unusedEvent(state, key)
    if (event === undefined) {
      this.#awaited.add(key)
      return undefined
    }
    this.#awaited.delete(key)
    this.#events.set(key, event)
    return event
  }

  /** The events that the pass waits for and that have come. */
  takeAwaited(state: TaskFlowState): [string, ReceivedEvent][] {
    return [...this.#awaited].flatMap((key): [string, ReceivedEvent][] => {
      const event = this.takeEvent(state, key)
      return event === undefined ? [] : [[key, event]]
    })
  }

  /** The event that the pass was given, if its value did not come with the flow's state. */
  givenEvent(key: string): ReceivedEvent | undefined {
    return this.#events.get(key)
  }

  /** The pass could not use the event that it was given, and waits for another one. That may have come already. */
  refuseEvent(state: TaskFlowState, key: string, given: ReceivedEvent | undefined): void {
    this.#events.delete(key)
    this.#awaited.add(key)
    const event = state.events?.[key]
    if (event?.value === undefined || isSame(event, given)) delete state.events?.[key]
  }

  /** True if an event has come that a pass which has ended was waiting for. */
  hasAwaited(state: TaskFlowState): boolean {
    return [...this.#awaited].some((key) => unusedEvent(state, key) !== undefined)
  }

  /** The values of the events that a pass was given are in the journal or in the flow's state now. That they came is kept. */
  markEvents(state: TaskFlowState): void {
    for (const [key, given] of this.#events) {
      const event = state.events?.[key]
      if (state.events !== undefined && isSame(event, given)) state.events[key] = { at: given.at }
    }
    this.#events.clear()
  }
}

/** An event that does not match the schema of the handler may be replaced before a pass has refused it. */
function isSame(event: TaskEvent | undefined, given: ReceivedEvent | undefined): boolean {
  return event?.at === given?.at && JSON.stringify(event?.value) === JSON.stringify(given?.value)
}
