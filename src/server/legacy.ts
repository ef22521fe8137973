// What hosts know of the room that serves 2025-era clients. It is loaded with the first of them.
import type { Caller } from '../flow/caller.ts'
import type { Cancel } from '../protocol/cancel.ts'
import type { Mailbox } from '../store/mailbox.ts'
import type { RequestId } from '../protocol/messages.ts'
import type { Reply } from './reply.ts'
import type { Resolved } from './resolve.ts'
import { isInitialize, namesRevision } from './message-kind.ts'

/** Serves 2025-era clients, on the same endpoint as all others. */
export interface Legacy {
  /** Answers the message, or the batch, that came by POST; `undefined` is a 202. Never throws. */
  post(message: Resolved, request: LegacyRequest): Promise<Reply | undefined>
  /** Opens a stream of events by GET, or resumes one. Never throws. */
  get(request: LegacyRequest): Promise<Reply>
  /** Opens a connection that carries one session, such as standard streams. */
  connect(wire: LegacyWire): Promise<LegacyConnection>
  /** Accepts no further calls. Streams that carry no call end. */
  drain(): void
  /** Running calls fail, and say why. */
  interrupt(): void
}

/** Times and limits of sessions with 2025-era clients. */
export interface LegacyOptions {
  /** How long a client may take to answer the questions of one round that have no deadline, in milliseconds. Default 300 000. */
  askMs?: number
  /** How long a whole call may take, in milliseconds. Default 3 600 000. */
  callMs?: number
  /** How long the events of a stream without a reader are kept, in milliseconds. Default 300 000. */
  keepMs?: number
  /**
   * Stores what follows an answer until a client that carries its calls (SEP-1685) fetches it, perhaps from another
   * instance. Default: the mailbox of `store`, or else one in memory.
   */
  mailbox?: Mailbox
}

export interface LegacyRequest {
  /** Reads one header by its name in lower case. */
  readonly header: (name: string) => string | undefined
  readonly caller: Caller | undefined
  readonly takesEvents: boolean
  /**
   * Refuses a message that the caller was not granted all scopes for, or that the headers do not agree with. `id` is that of
   * the message to answer. Called for every message of a request, once its session and the size of its batch are checked.
   */
  readonly refuse?: (call: Resolved, id: RequestId | undefined) => Reply | undefined
  /**
   * The request waits from now on, although it may have been replied to, and keeps what came with it until `release` is called. Returns
   * the reason if there is no room for that.
   */
  readonly hold?: () => string | undefined
  /** A request that waits keeps so many bytes more, such as an answer. Returns the reason if there is no room for that. */
  readonly keep?: (bytes: number) => string | undefined
  readonly release?: () => void
  /** Cancelled when the client has disconnected. That ends a stream, but no call. */
  readonly peer: Cancel
}

export interface LegacyWire {
  /** The caller at the other end of the connection. `undefined` if it is anonymous. */
  readonly caller: Caller | undefined
  send(text: string): void
  /** Sends a message that may be dropped. Returns `false` when it was, because the reader is too far behind. */
  notify(text: string): boolean
}

export interface LegacyConnection {
  /** A message, or a batch. `ended` is called once nothing of it runs any more, before it is responded to. */
  receive(message: Resolved, ended?: () => void): void
  /** The client has disconnected. Cancels its calls. */
  close(): void
}

/** Loads the implementation when it is first needed. */
export function lazily(load: () => Promise<Legacy>): Legacy {
  let loading: Promise<Legacy> | undefined
  let loaded: Legacy | undefined
  const legacy = (): Promise<Legacy> =>
    (loading ??= load().then((later) => {
      loaded = later
      return later
    }))
  return {
    post: async (message, request) => (await legacy()).post(message, request),
    get: async (request) => (await legacy()).get(request),
    connect: async (wire) => (await legacy()).connect(wire),
    drain: () => loaded?.drain(),
    interrupt: () => loaded?.interrupt(),
  }
}

/** True when an HTTP request belongs to a session of an older revision. A message that names its revision never does. */
export function isOlder(message: Resolved, header: (name: string) => string | undefined): boolean {
  if (namesRevision(message)) return false
  return (
    isInitialize(message) ||
    header('mcp-session-id') !== undefined ||
    OLDER_REVISION.test(header('mcp-protocol-version') ?? '')
  )
}

const OLDER_REVISION = /^202[45]-\d\d-\d\d$/
