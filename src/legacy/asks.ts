// What waits on this instance, bounded across all sessions: questions for a response, and requests for the result of a task.
import { isObject } from '../protocol/json.ts'
import { randomBytes } from 'node:crypto'
import { INTERNAL_ERROR, ProtocolError, RallyError } from '../protocol/errors.ts'
import { SharedLimit } from '../protocol/shared-limit.ts'
import type { Limits } from '../server/limits.ts'
import { noRoomText, sharesOf } from '../server/limits.ts'
import type { Session, Stoppable } from './session.ts'

/** The response of a client: its result, or the message of its error. */
export type Response = { readonly result: unknown } | { readonly error: string }

interface WaitingQuestion {
  readonly session: Session
  readonly answered: (response: Response) => void
}

/** Unguessable, and unique across instances. */
export function newAskId(): string {
  return `ask-${randomBytes(12).toString('base64url')}`
}

/** Questions that wait for the response of a client, by the id of the request that asked. */
export class Asks {
  readonly #waiting = new Map<string, WaitingQuestion>()
  readonly #shares: SharedLimit<string>

  constructor(limits: Limits) {
    const shares = sharesOf(limits, 'maxQuestions')
    const error = `the server withdrew it, because this caller has the most open questions of all (limits.maxQuestions is ${shares.total})`
    this.#shares = new SharedLimit({
      ...shares,
      evict: (id) => {
        const { answered } = this.#waiting.get(id) ?? {}
        this.#waiting.delete(id)
        answered?.({ error })
      },
    })
  }

  get size(): number {
    return this.#waiting.size
  }

  /** Returns the id for the request that asks, or the error if too many questions wait. */
  expect(session: Session, answered: (response: Response) => void): string | RallyError {
    const noRoom = this.#shares.makeRoom(session.owner, 1)
    if (noRoom !== undefined) {
      return new RallyError('ASK_LIMIT', noRoomText(noRoom, 'open questions', 'maxQuestions', this.#shares))
    }
    const id = newAskId()
    this.#shares.set(session.owner, id, 1)
    this.#waiting.set(id, { session, answered })
    return id
  }

  forget(id: string): void {
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) return
    this.#waiting.delete(id)
    this.#shares.delete(waiting.session.owner, id)
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

/** A request that waits for the result of a task. */
export interface WaitingRequest extends Stoppable {
  readonly owner: string
  /** Makes it fail, because others need the room. */
  evict(): void
}

/** All requests on this instance that wait for the result of a task. */
export class TaskWaits {
  readonly #all = new Set<WaitingRequest>()
  readonly #shares: SharedLimit<WaitingRequest>

  constructor(limits: Limits) {
    this.#shares = new SharedLimit({ ...sharesOf(limits, 'maxTaskWaits'), evict: (wait) => wait.evict() })
  }

  get size(): number {
    return this.#all.size
  }

  /** Throws if too many requests wait. */
  add(wait: WaitingRequest): void {
    const noRoom = this.#shares.makeRoom(wait.owner, 1)
    if (noRoom !== undefined) {
      const why = noRoomText(noRoom, 'requests that wait for results of tasks', 'maxTaskWaits', this.#shares)
      throw new ProtocolError(INTERNAL_ERROR, `${why} Poll tasks/get instead.`)
    }
    this.#all.add(wait)
    this.#shares.set(wait.owner, wait, 1)
  }

  delete(wait: WaitingRequest): void {
    this.#all.delete(wait)
    this.#shares.delete(wait.owner, wait)
  }

  /** Makes all of them fail, because the server is shutting down. */
  end(): void {
    for (const wait of this.#all) wait.interrupt()
  }
}
