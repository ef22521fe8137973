// What an instance remembers of a session beside its id: running calls, streams, the log level, subscriptions.
import type { Cancel } from '../protocol/cancel.ts'
import { INTERNAL_ERROR, INVALID_REQUEST, ProtocolError } from '../protocol/errors.ts'
import type { LoggingLevel, RequestId } from '../protocol/messages.ts'
import type { OlderRevision } from '../protocol/revisions/older.ts'
import type { ChangeEvent } from '../server/subscriptions.ts'
import type { SessionClaims } from './session-id.ts'
import type { EventStream } from './stream.ts'

/** A running call, or a wait for the result of a task. */
export interface Stoppable {
  readonly cancel: Cancel
  /** How many questions it asked before, if the client carries it. */
  readonly leg?: number
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
  /** The URIs of the resources that the client has subscribed to. */
  readonly uris = new Set<string>()
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

  /** Returns the notification of a change, or `undefined` if the client did not subscribe to it. */
  told(change: ChangeEvent): string | undefined {
    if (change.type !== 'updated') return `{"jsonrpc":"2.0","method":"notifications/${change.type}/list_changed"}`
    if (!this.uris.has(change.uri)) return undefined
    return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":${JSON.stringify(change.uri)}}}`
  }
}
