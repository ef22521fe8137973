// What waits on this instance, bounded across all sessions: questions for a response, and requests for the result of a task.
import { isObject } from '../protocol/json.ts'
import { randomBytes } from 'node:crypto'
import { INTERNAL_ERROR, ProtocolError } from '../protocol/errors.ts'
import type { Session, Stoppable } from './session.ts'

/** The response of a client: its result, or the message of its error. */
export type Response = { readonly result: unknown } | { readonly error: string }

interface Waiting {
  readonly session: Session
  readonly answered: (response: Response) => void
}

const MAX_WAITING = 10_000

/** Unguessable, and unique across instances. */
export function newAskId(): string {
  return `ask-${randomBytes(12).toString('base64url')}`
}

/** Questions that wait for the response of a client, by the id of the request that asked. */
export class Asks {
  readonly #waiting = new Map<string, Waiting>()

  get size(): number {
    return this.#waiting.size
  }

  /** Returns the id for the request that asks, or `undefined` if too many questions wait. */
  expect(session: Session, answered: (response: Response) => void): string | undefined {
    if (this.#waiting.size >= MAX_WAITING) return undefined
    const id = newAskId()
    this.#waiting.set(id, { session, answered })
    return id
  }

  forget(id: string): void {
    this.#waiting.delete(id)
  }

  /** Returns true if a question waited for this response. */
  take(session: Session, message: Record<string, unknown>): boolean {
    const { id } = message
    const waiting = typeof id === 'string' ? this.#waiting.get(id) : undefined
    if (waiting === undefined || waiting.session !== session) return false
    this.forget(id as string)
    waiting.answered(responseIn(message))
    return true
  }
}

/** Reads a message that is known to be a response. */
export function responseIn(message: Record<string, unknown>): Response {
  return 'error' in message ? { error: textOf(message['error']) } : { result: message['result'] }
}

const MAX_REASON_LENGTH = 500

function textOf(error: unknown): string {
  const message = isObject(error) ? error['message'] : undefined
  return typeof message === 'string' && message !== ''
    ? message.slice(0, MAX_REASON_LENGTH)
    : 'the client gave no reason'
}

const MAX_WAITS = 1_000

/** All requests on this instance that wait for the result of a task. */
export class TaskWaits {
  readonly #all = new Set<Stoppable>()

  get size(): number {
    return this.#all.size
  }

  /** Throws if too many requests wait. */
  add(wait: Stoppable): void {
    if (this.#all.size >= MAX_WAITS) {
      throw new ProtocolError(
        INTERNAL_ERROR,
        `${MAX_WAITS} requests already wait for results of tasks. Poll tasks/get instead.`,
      )
    }
    this.#all.add(wait)
  }

  delete(wait: Stoppable): void {
    this.#all.delete(wait)
  }

  /** Makes all of them fail, because the server is shutting down. */
  end(): void {
    for (const wait of this.#all) wait.interrupt()
  }
}
