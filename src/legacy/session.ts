// What an instance remembers of a session beside its id: running calls, streams, the log level, subscriptions.
import type { Cancel } from '../protocol/cancel.ts'
import { INTERNAL_ERROR, INVALID_REQUEST, ProtocolError } from '../protocol/errors.ts'
import type { LoggingLevel, RequestId } from '../protocol/messages.ts'
import type { OlderRevision } from '../protocol/revisions/older.ts'
import type { NoRoom } from '../protocol/shared-limit.ts'
import { sessionOwner, SharedLimit } from '../protocol/shared-limit.ts'
import { digest } from '../seal/canonical.ts'
import type { Limits } from '../server/limits.ts'
import { sharesOf } from '../server/limits.ts'
import type { ChangeEvent, ScopesOf } from '../server/subscriptions.ts'
import { bytesOfUris } from '../server/subscriptions.ts'
import type { TaskProgress } from '../server/tasks.ts'
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

/** Sends the progress of a task. */
export interface ProgressReporter {
  send(progress: TaskProgress | undefined): void
  /** Sends it here instead, until the returned function is called. */
  redirect(notify: (text: string) => boolean): () => void
}

/** A task that is followed for its progress. */
export interface FollowedProgress {
  readonly reporter: ProgressReporter
  /** Follows the task no longer. */
  readonly stop: () => void
}

interface SubscribedUri {
  /** The scopes that the request was held to. */
  readonly scopes: readonly string[]
  /** Whether the caller may know of changes. */
  readonly sees: () => boolean
}

/** The level for a client that has set none. */
const DEFAULT_LEVEL: LoggingLevel = 'info'

const MAX_CALLS = 256

export class Session {
  readonly id: string
  /** Whose share of the limits it uses: its principal's, or its own if the caller has none. */
  readonly owner: string
  readonly principal: string | undefined
  #claims: Omit<SessionClaims, 'id'>
  readonly calls = new Map<RequestId, Stoppable>()
  readonly streams = new Map<string, EventStream>()
  /** The tasks whose progress its calls asked for, by the id of each task. */
  readonly progress = new Map<string, FollowedProgress>()
  /** The URIs of the resources that the client has subscribed to. */
  readonly #uris = new Map<string, SubscribedUri>()
  #uriBytes = 0
  /** When the last message was served. */
  usedAt = 0
  #level: LoggingLevel | undefined
  #uses = 0

  /** A session opens only for the principal that began it. */
  constructor(claims: SessionClaims, principal?: string) {
    const { id } = claims
    this.id = id
    this.principal = principal
    this.owner = principal === undefined ? sessionOwner(id) : `principal ${principal}`
    this.#claims = claims
  }

  /** Whose share of the mailbox it uses. The mailbox does not learn who that is. */
  get mailboxOwner(): string {
    return this.principal === undefined ? sessionOwner(digest(this.id)) : digest(this.principal)
  }

  get revision(): OlderRevision {
    return this.#claims.revision
  }

  get capabilities(): number {
    return this.#claims.capabilities
  }

  get client(): { readonly name: string; readonly version: string } {
    const { clientName: name, clientVersion: version } = this.#claims
    return { name, version }
  }

  /** Those that the client declared. */
  get extensions(): Readonly<Record<string, object>> {
    return this.#claims.extensions ?? {}
  }

  /** True if the client returns a state with each answer (SEP-1685). */
  get carriesState(): boolean {
    return this.#claims.carriesState
  }

  /**
   * Another client has initialized on the same connection, through a gateway that gives all of them one process. What is sent
   * may reach any of them. So the session has the older revision, and only what all of them declared.
   */
  join(claims: Omit<SessionClaims, 'id'>): void {
    const { revision, capabilities, carriesState } = this.#claims
    this.#claims = {
      ...claims,
      revision: claims.revision.name < revision.name ? claims.revision : revision,
      capabilities: claims.capabilities & capabilities,
      carriesState: claims.carriesState && carriesState,
      extensions: Object.fromEntries(
        Object.entries(claims.extensions ?? {}).filter(([name]) => Object.hasOwn(this.extensions, name)),
      ),
    }
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
    return this.isBusy || this.uris.size + this.progress.size > 0 || this.#level !== undefined
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

  get uris(): Pick<ReadonlyMap<string, unknown>, 'has' | 'size'> {
    return this.#uris
  }

  /** What the URIs use. */
  get uriBytes(): number {
    return this.#uriBytes
  }

  subscribe(uri: string, subscribed: SubscribedUri): void {
    if (!this.#uris.has(uri)) this.#uriBytes += bytesOfUris([uri])
    this.#uris.set(uri, subscribed)
  }

  unsubscribe(uri: string): void {
    if (this.#uris.delete(uri)) this.#uriBytes -= bytesOfUris([uri])
  }

  unsubscribeAll(): void {
    this.#uris.clear()
    this.#uriBytes = 0
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
    const subscribed = this.#uris.get(change.uri)
    if (subscribed?.sees() !== true) return undefined
    if (scopesOf(change.uri)?.every((scope) => subscribed.scopes.includes(scope)) === false) return undefined
    return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":${JSON.stringify(change.uri)}}}`
  }
}

export interface SessionsOptions {
  readonly limits: Limits
  readonly now: () => number
  /** Called when a session was forgotten. */
  readonly forgotten: (session: Session) => void
}

const MAX_SWEEP_MS = 60_000

/**
 * The sessions that an instance knows something about. A session that it has forgotten still works: its id holds what it needs.
 */
export class Sessions {
  readonly #options: SessionsOptions
  readonly #shares: SharedLimit<Session>
  /** In the order of their last use. */
  readonly #all = new Map<string, Session>()
  #sweep: NodeJS.Timeout | undefined

  constructor(options: SessionsOptions) {
    this.#options = options
    this.#shares = new SharedLimit({
      ...sharesOf(options.limits, 'maxSessions'),
      pick: firstIdle,
      pickOwn: firstIdle,
      evictsEqual: true,
      evict: (session) => this.#forget(session),
    })
  }

  get size(): number {
    return this.#all.size
  }

  values(): Iterable<Session> {
    return this.#all.values()
  }

  /** The limit that the sessions share. */
  get shares(): SharedLimit<Session> {
    return this.#shares
  }

  /** The caller calls `settle` when it is done. Returns why if there is no room for another session. */
  of(claims: SessionClaims, principal: string | undefined): Session | NoRoom {
    const session = this.#all.get(claims.id) ?? new Session(claims, principal)
    const noRoom = this.#all.delete(session.id) ? undefined : this.#shares.makeRoom(session.owner, 1)
    if (noRoom !== undefined) return noRoom
    // Deleted first, so that it becomes the newest.
    this.#shares.delete(session.owner, session)
    this.#shares.set(session.owner, session, 1)
    this.#all.set(session.id, session)
    session.usedAt = this.#options.now()
    this.#sweep ??= setInterval(
      () => this.#forgetIdle(),
      Math.min(this.#options.limits.sessionIdleMs, MAX_SWEEP_MS),
    ).unref()
    return session
  }

  /** Forgets the session unless it holds something that its id does not. */
  settle(session: Session): void {
    if (!session.isWorthKeeping) this.#forget(session)
  }

  #forgetIdle(): void {
    const { now, limits } = this.#options
    const before = now() - limits.sessionIdleMs
    for (const session of this.#all.values()) {
      if (session.usedAt > before) break
      if (!session.isBusy) this.#forget(session)
    }
  }

  #forget(session: Session): void {
    this.#shares.delete(session.owner, session)
    if (this.#all.get(session.id) === session) this.#all.delete(session.id)
    this.#options.forgotten(session)
    if (this.#all.size > 0) return
    clearInterval(this.#sweep)
    this.#sweep = undefined
  }
}

function firstIdle(sessions: Iterable<Session>): Session | undefined {
  for (const session of sessions) if (!session.isBusy) return session
  return undefined
}

const MAX_BATCH = 100

/** Returns why a batch is refused as a whole, or `undefined`. Without a revision the client has not initialized yet. */
export function batchProblem(batch: readonly unknown[], revision: OlderRevision | undefined): string | undefined {
  if (revision === undefined) return 'initialize first'
  if (!revision.takesBatches) return `revision ${revision.name} has no batches`
  if (batch.length > 0 && batch.length <= MAX_BATCH) return undefined
  return `a batch must have 1 to ${MAX_BATCH} messages, got ${batch.length}`
}
