// The questions that wait for the response of a client, by the id of the request that asked. Bounded for all sessions.
import { isObject } from '../protocol/json.ts'
import { randomBytes } from 'node:crypto'
import type { Session } from './session.ts'

/** What a client responded: a result, or why there is none. */
export type Response = { readonly result: unknown } | { readonly error: string }

interface Waiting {
  readonly session: Session
  readonly answered: (response: Response) => void
}

const MOST_WAITING = 10_000

/** Nobody can guess it, and no other instance has it. */
export function newAskId(): string {
  return `ask-${randomBytes(12).toString('base64url')}`
}

export class Asks {
  readonly #waiting = new Map<string, Waiting>()

  get size(): number {
    return this.#waiting.size
  }

  /** The id that was asked under. `undefined` where too many wait. */
  expect(session: Session, answered: (response: Response) => void): string | undefined {
    if (this.#waiting.size >= MOST_WAITING) return undefined
    const id = newAskId()
    this.#waiting.set(id, { session, answered })
    return id
  }

  forget(id: string): void {
    this.#waiting.delete(id)
  }

  /** Gives whether somebody waited for this response. */
  take(session: Session, message: Record<string, unknown>): boolean {
    const { id } = message
    const waiting = typeof id === 'string' ? this.#waiting.get(id) : undefined
    if (waiting === undefined || waiting.session !== session) return false
    this.forget(id as string)
    waiting.answered(responseIn(message))
    return true
  }
}

/** Of a message that is one. */
export function responseIn(message: Record<string, unknown>): Response {
  return 'error' in message ? { error: textOf(message['error']) } : { result: message['result'] }
}

const LONGEST_REASON = 500

function textOf(error: unknown): string {
  const message = isObject(error) ? error['message'] : undefined
  return typeof message === 'string' && message !== '' ? message.slice(0, LONGEST_REASON) : 'no reason was given'
}
