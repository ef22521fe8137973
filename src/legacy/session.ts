// What an instance remembers of a session beside its id: calls under way, streams, the log level, subscriptions.
import type { Cancel } from '../protocol/cancel.ts'
import { INTERNAL_ERROR, INVALID_REQUEST, ProtocolError } from '../protocol/errors.ts'
import type { LoggingLevel, RequestId } from '../protocol/messages.ts'
import type { OlderRevision } from '../protocol/revisions/older.ts'
import type { ChangeEvent } from '../server/subscriptions.ts'
import type { SessionClaims } from './session-id.ts'
import type { EventStream } from './stream.ts'

/** A call that can be stopped. */
export interface Stoppable {
  readonly cancel: Cancel
  /** How many questions it asked before, where the client carries it. */
  readonly leg?: number
  /** It fails, and says that the server is going down. */
  interrupt(): void
}

/** Where a client that has set no level would like to be left in peace. */
const DEFAULT_LEVEL: LoggingLevel = 'info'

const MOST_CALLS = 256

export class Session {
  readonly id: string
  readonly revision: OlderRevision
  readonly capabilities: number
  /** Whether the client carries a state with each question. */
  readonly carriesState: boolean
  readonly calls = new Map<RequestId, Stoppable>()
  readonly streams = new Map<string, EventStream>()
  /** Resources that the client wants to be told of. */
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

  /** Something goes on that an instance must not lose. */
  get isBusy(): boolean {
    return this.calls.size + this.streams.size + this.#uses > 0
  }

  /** A message of it is being looked at. Gives what says that it is no more. */
  use(): () => void {
    this.#uses += 1
    return () => {
      this.#uses -= 1
    }
  }

  /** Whether anything is remembered that the id does not hold. */
  get isWorthKeeping(): boolean {
    return this.isBusy || this.uris.size > 0 || this.#level !== undefined
  }

  /** A call is under way from now on, in place of its own beginning where it goes on. Throws where its id is in use, or too many are. */
  enter(id: RequestId, call: Stoppable, goesOn = false): void {
    if (this.calls.has(id) && !goesOn) throw new ProtocolError(INVALID_REQUEST, 'Invalid request: this id is in use')
    if (this.calls.size >= MOST_CALLS) {
      throw new ProtocolError(INTERNAL_ERROR, 'Too many calls are under way. Try again later.')
    }
    this.calls.set(id, call)
  }

  /** The stream for what belongs to no call. Each message goes out on one stream only. */
  get standalone(): EventStream | undefined {
    let found: EventStream | undefined
    for (const stream of this.streams.values()) {
      if (stream.standalone && (found === undefined || stream.unreadSince === undefined)) found = stream
    }
    return found
  }

  /** The notification of a change; `undefined` where the client did not ask for it. */
  told(change: ChangeEvent): string | undefined {
    if (change.type !== 'updated') return `{"jsonrpc":"2.0","method":"notifications/${change.type}/list_changed"}`
    if (!this.uris.has(change.uri)) return undefined
    return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":${JSON.stringify(change.uri)}}}`
  }
}
