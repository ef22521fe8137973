// What an instance remembers of a session beside its id: running calls, streams, the log level, subscriptions.
import type { Cancel } from '../protocol/cancel.ts'
import { INTERNAL_ERROR, INVALID_REQUEST, ProtocolError } from '../protocol/errors.ts'
import type { LoggingLevel, RequestId } from '../protocol/messages.ts'
import type { OlderRevision } from '../protocol/revisions/older.ts'
import type { ChangeEvent, ScopesOf } from '../server/subscriptions.ts'
import type { SessionClaims } from './session-id.ts'
import type { EventStream } from './stream.ts'

/** A running call, or a wait for the result of a task. */
export interface Stoppable {
  readonly cancel: Cancel
  /** How many questions it asked before, if the client carries it. */
  readonly segment?: number
  /** Makes it fail, because the server is shutting down. */
  interrupt(): void
}

/** The level for a client that has set none. */
const DEFAULT_LEVEL: LoggingLevel = 'info'

const MAX_CALLS = 256

export class Session {
  readonly id: string
  readonly revision: OlderRevision
  readonly capabilities: number
  /** True if the client returns a state with each answer (SEP-1685). */
  readonly carriesState: boolean
  readonly calls = new Map<RequestId, Stoppable>()
  readonly streams = new Map<string, EventStream>()
  /** The URIs of the resources that the client has subscribed to, each with the scopes that the request was held to. */
  readonly uris = new Map<string, readonly string[]>()
  #level: LoggingLevel | undefined
  #uses = 0

  constructor({ id, revision, capabilities, carriesState }: SessionClaims) {
    this.id = id
    this.revision = revision
    this.capabilities = capabilities
    this.carriesState = carriesState
  }

  get level(): LoggingLevel {
    return this.#level ?? DEFAULT_LEVEL
  }

  set level(level: LoggingLevel) {
    this.#level = level
  }

  /** True while something runs that this instance must not forget. */
  get isBusy(): boolean {
    return this.calls.size + this.streams.size + this.#uses > 0
  }

  /** Marks the session as busy while a message is served. Returns the function to call when it is done. */
  use(): () => void {
    this.#uses += 1
    return () => {
      this.#uses -= 1
    }
  }

  /** True if this instance knows something of the session that its id does not hold. */
  get isWorthKeeping(): boolean {
    return this.isBusy || this.uris.size > 0 || this.#level !== undefined
  }

  /**
   * Registers a running call. A resumed call replaces the segment that asked its question, which is about to end. Throws if
   * the id is in use, or too many calls run.
   */
  enter(id: RequestId, call: Stoppable, isResumed = false): void {
    if (this.calls.has(id) && !isResumed) {
      throw new ProtocolError(INVALID_REQUEST, `Invalid request: id ${JSON.stringify(id)} is in use by another call`)
    }
    if (this.calls.size >= MAX_CALLS) {
      throw new ProtocolError(INTERNAL_ERROR, `The session already runs ${MAX_CALLS} calls. Try again later.`)
    }
    this.calls.set(id, call)
  }

  /** The stream for messages that belong to no call. Each message is sent on one stream only. */
  get standalone(): EventStream | undefined {
    let found: EventStream | undefined
    for (const stream of this.streams.values()) {
      if (stream.standalone && (found === undefined || stream.unreadSince === undefined)) found = stream
    }
    return found
  }

  /**
   * Returns the notification of a change, or `undefined` if the client did not subscribe to it, or not with the scopes that the
   * resource needs by now.
   */
  notificationOf(change: ChangeEvent, scopesOf: ScopesOf): string | undefined {
    if (change.type !== 'updated') return `{"jsonrpc":"2.0","method":"notifications/${change.type}/list_changed"}`
    const checked = this.uris.get(change.uri)
    if (checked === undefined || scopesOf(change.uri)?.every((scope) => checked.includes(scope)) === false)
      return undefined
    return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":${JSON.stringify(change.uri)}}}`
  }
}

const MAX_SESSIONS = 10_000

/**
 * The sessions that an instance knows something about. A session that it has forgotten still works: its id holds what it needs.
 */
export class Sessions {
  readonly #max: number
  /** In the order of their last use. */
  readonly #all = new Map<string, Session>()

  constructor(max = MAX_SESSIONS) {
    this.#max = max
  }

  get size(): number {
    return this.#all.size
  }

  values(): Iterable<Session> {
    return this.#all.values()
  }

  /** Returns `undefined` if too many sessions are busy. The caller calls `settle` when it is done. */
  of(claims: SessionClaims): Session | undefined {
    const known = this.#all.get(claims.id)
    if (known === undefined && this.#all.size >= this.#max && !this.#forgetOne()) return undefined
    const session = known ?? new Session(claims)
    this.#all.delete(claims.id)
    this.#all.set(claims.id, session)
    return session
  }

  /** Forgets the session unless it holds something that its id does not. */
  settle(session: Session): void {
    if (!session.isWorthKeeping) this.#all.delete(session.id)
  }

  #forgetOne(): boolean {
    for (const session of this.#all.values()) {
      if (!session.isBusy) return this.#all.delete(session.id)
    }
    return false
  }
}

const MAX_BATCH = 100

/** Returns why a batch is refused as a whole, or `undefined`. Without a revision the client has not initialized yet. */
export function batchProblem(batch: readonly unknown[], revision: OlderRevision | undefined): string | undefined {
  if (revision === undefined) return 'initialize first'
  if (!revision.takesBatches) return `revision ${revision.name} has no batches`
  if (batch.length > 0 && batch.length <= MAX_BATCH) return undefined
  return `a batch must have 1 to ${MAX_BATCH} messages, got ${batch.length}`
}
