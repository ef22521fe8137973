// The streams that `subscriptions/listen` opens, and how changes reach them.
import { isObject } from '../protocol/json.ts'
import type { Cancel } from '../protocol/cancel.ts'
import { INVALID_PARAMS, ProtocolError } from '../protocol/errors.ts'
import type { Logger } from '../protocol/logger.ts'
import type { RequestId, SubscriptionFilter } from '../protocol/messages.ts'
import { META_SUBSCRIPTION } from '../protocol/revisions/2026-07-28.ts'
import { NOBODY, SharedLimit } from '../protocol/shared-limit.ts'
import type { Limits } from './limits.ts'
import { fits, noRoomError, readLimits, sharesOf } from './limits.ts'

/** A change that clients can subscribe to. Plain JSON, so that a bus can carry it. */
export type ChangeEvent = { type: 'tools' | 'prompts' | 'resources' } | { type: 'updated'; uri: string }

/** Carries changes to every instance of a fleet, the publishing one included. Default: this process alone. */
export interface Bus {
  /** Sends a change to every instance. */
  publish(change: ChangeEvent): void | Promise<void>
  /** Returns a function that ends the subscription. */
  subscribe(listener: (change: ChangeEvent) => void): () => void
}

/** Notifies subscribed clients, on every instance that shares the bus. */
export interface ChangeNotifier {
  /** Tells clients that the list of tools has changed. */
  toolsChanged(): void
  /** Tells clients that the list of prompts has changed. */
  promptsChanged(): void
  /** Tells clients that the list of resources has changed. */
  resourcesChanged(): void
  /** Tells the clients that subscribed to this resource that its contents have changed. */
  resourceUpdated(uri: string): void
}

/** With the field of the tasks extension. */
interface Filter extends SubscriptionFilter {
  taskIds?: string[]
}

/** A request for notifications, and the stream that they are sent on. */
export interface Listening {
  readonly id: RequestId
  readonly filter: Filter
  /** The scopes that the caller was checked for. Default: none. */
  readonly scopes?: readonly string[] | undefined
  /** Whether the caller may know of changes at a URI. Default: of all. */
  readonly sees?: (uri: string) => boolean
  /** Whose share it uses. Default: `NOBODY`. */
  readonly owner?: string
  readonly notify: (text: string) => unknown
  readonly cancel?: Cancel | undefined
  /** Starts what else is sent on the stream, and returns a function that stops it. Default: nothing. */
  readonly follow?: (tell: (message: string) => void) => () => void
}

interface SubscriptionsOptions {
  /** Default: those of an app without options. */
  readonly limits?: Limits
  /** Default: no resource has scopes. */
  readonly scopesOf?: ScopesOf
}

/** The scopes that a client needs to be notified of changes of this resource. */
export type ScopesOf = (uri: string) => readonly string[] | undefined

interface Subscription {
  readonly filter: Filter
  /** The scopes that its request was held to. */
  readonly scopes: readonly string[]
  readonly uris: ReadonlySet<string>
  readonly sees: (uri: string) => boolean
  readonly idText: string
  readonly notify: (text: string) => unknown
  readonly end: () => void
}

/** The most URIs of one subscription, and of one session of an older revision. */
export const MOST_URIS = 1_000
const MOST_TASKS = 100

export class Subscriptions {
  readonly #bus: Bus
  readonly #logger: Logger
  readonly #scopesOf: ScopesOf
  readonly #open = new Set<Subscription>()
  readonly #count: SharedLimit<Subscription>
  readonly #bytes: SharedLimit<Subscription>
  readonly #watchers = new Set<(change: ChangeEvent) => void>()
  #leaveBus: (() => void) | undefined
  #over = false

  constructor(bus: Bus, logger: Logger, { limits = readLimits(), scopesOf = noScopes }: SubscriptionsOptions = {}) {
    this.#bus = bus
    this.#logger = logger
    this.#scopesOf = scopesOf
    this.#count = new SharedLimit({ ...sharesOf(limits, 'maxSubscriptions'), evict })
    this.#bytes = new SharedLimit({ ...sharesOf(limits, 'maxSubscribedBytes'), evict })
  }

  /**
   * Resolves to true when the server ended the stream, and to false when the client did. Acknowledges before it returns.
   */
  listen({
    id,
    filter,
    scopes = [],
    sees = seesAll,
    owner = NOBODY,
    notify,
    cancel,
    follow,
  }: Listening): Promise<boolean> {
    const bytes = bytesOfUris(filter.resourceSubscriptions ?? []) + bytesOfUris(filter.taskIds ?? [])
    this.#makeRoom(owner, bytes)
    return new Promise((resolve) => {
      let unfollow: (() => void) | undefined
      const leave = (ended: boolean): void => {
        this.#open.delete(subscription)
        this.#count.delete(owner, subscription)
        this.#bytes.delete(owner, subscription)
        unfollow?.()
        this.#leaveIfAlone()
        cancel?.listen(undefined)
        resolve(ended)
      }
      const subscription: Subscription = {
        filter,
        scopes,
        uris: new Set(filter.resourceSubscriptions),
        sees,
        idText: JSON.stringify(id),
        notify,
        end: () => leave(true),
      }
      // First, because the bus may throw. Then nothing was acknowledged yet.
      if (!this.#over) this.#join()
      notify(text('subscriptions/acknowledged', subscription, `,"notifications":${JSON.stringify(filter)}`))
      if (this.#over) return resolve(true)
      this.#open.add(subscription)
      this.#count.set(owner, subscription, 1)
      this.#bytes.set(owner, subscription, bytes)
      unfollow = follow?.((message) => tell(subscription, message))
      cancel?.listen(() => leave(false))
    })
  }

  /** Passes every change to a watcher that notifies clients in another way. Returns a function that ends it. */
  watch(watcher: (change: ChangeEvent) => void): () => void {
    this.#join()
    this.#watchers.add(watcher)
    return () => {
      this.#watchers.delete(watcher)
      this.#leaveIfAlone()
    }
  }

  publish(change: ChangeEvent): void {
    const failed = (error: unknown): void =>
      this.#logger.error('bus.publish() failed; clients are not notified of this change.', { change, error })
    try {
      void Promise.resolve(this.#bus.publish(change)).catch(failed)
    } catch (error) {
      failed(error)
    }
  }

  /** Notifies the clients of this instance only. */
  deliver(change: ChangeEvent): void {
    const required = (change.type === 'updated' && this.#scopesOf(change.uri)) || []
    for (const subscription of this.#open) {
      // A resource that was registered after the subscription may need scopes that nobody has checked.
      if (!required.every((scope) => subscription.scopes.includes(scope))) continue
      const message = messageFor(change, subscription)
      if (message !== undefined) tell(subscription, message)
    }
    for (const watcher of this.#watchers) watcher(change)
  }

  /** Ends all streams with a result, and every later one at once. */
  end(): void {
    this.#over = true
    for (const subscription of this.#open) subscription.end()
  }

  /** Ends streams of the caller that uses the most, if everything is in use. Throws if there is no room. */
  #makeRoom(owner: string, bytes: number): void {
    const tooMany = this.#count.makeRoom(owner, 1)
    if (tooMany !== undefined) throw noRoomError(tooMany, 'open subscriptions', 'maxSubscriptions', this.#count)
    const tooLarge = this.#bytes.makeRoom(owner, bytes)
    if (tooLarge !== undefined) throw noRoomError(tooLarge, 'bytes of URIs', 'maxSubscribedBytes', this.#bytes)
  }

  #join(): void {
    this.#leaveBus ??= this.#bus.subscribe((change) => this.deliver(change))
  }

  #leaveIfAlone(): void {
    if (this.#open.size + this.#watchers.size > 0) return
    this.#leaveBus?.()
    this.#leaveBus = undefined
  }
}

/** Ends the stream of a reader that is too far behind: it would miss the change, so it has to subscribe and read again. */
function tell({ notify, end }: Subscription, message: string): void {
  if (notify(message) === false) end()
}

function messageFor(change: ChangeEvent, subscription: Subscription): string | undefined {
  const { filter, uris, sees } = subscription
  switch (change.type) {
    case 'tools':
      return filter.toolsListChanged ? text('tools/list_changed', subscription) : undefined
    case 'prompts':
      return filter.promptsListChanged ? text('prompts/list_changed', subscription) : undefined
    case 'resources':
      return filter.resourcesListChanged ? text('resources/list_changed', subscription) : undefined
    case 'updated':
      return uris.has(change.uri) && sees(change.uri)
        ? text('resources/updated', subscription, `,"uri":${JSON.stringify(change.uri)}`)
        : undefined
  }
}

function text(what: string, { idText }: Subscription, rest = ''): string {
  return `{"jsonrpc":"2.0","method":"notifications/${what}","params":{"_meta":{"${META_SUBSCRIPTION}":${idText}}${rest}}}`
}

/** The requested notifications that this app has. The acknowledgement leaves out the rest. */
export function readFilter(
  requested: unknown,
  has: { prompts: boolean; resources: boolean; tasks?: boolean },
  { maxUriBytes, maxSubscriptionBytes }: Limits,
): Filter {
  if (!isObject(requested)) throw invalid('notifications must be an object')
  const uris = readTexts(requested, 'resourceSubscriptions', 'URIs', MOST_URIS)
  const taskIds = readTexts(requested, 'taskIds', 'task ids', MOST_TASKS)
  if (uris?.every((uri) => fits(uri, maxUriBytes)) === false) {
    throw invalid(
      `notifications.resourceSubscriptions: a URI must be at most ${maxUriBytes} bytes long (limits.maxUriBytes)`,
    )
  }
  if (uris !== undefined && bytesOfUris(uris) > maxSubscriptionBytes) {
    throw invalid(
      `notifications.resourceSubscriptions: all URIs together may use ${maxSubscriptionBytes} bytes (limits.maxSubscriptionBytes). Subscribe to fewer`,
    )
  }
  return {
    ...(wants(requested, 'toolsListChanged') && { toolsListChanged: true }),
    ...(wants(requested, 'promptsListChanged') && has.prompts && { promptsListChanged: true }),
    ...(wants(requested, 'resourcesListChanged') && has.resources && { resourcesListChanged: true }),
    ...(uris !== undefined && has.resources && { resourceSubscriptions: uris }),
    ...(taskIds !== undefined && has.tasks && { taskIds }),
  }
}

function readTexts(requested: Record<string, unknown>, kind: string, what: string, most: number): string[] | undefined {
  const texts = requested[kind]
  if (texts === undefined) return undefined
  if (!Array.isArray(texts) || !texts.every((each) => typeof each === 'string')) {
    throw invalid(`notifications.${kind} must be a list of ${what}`)
  }
  if (texts.length > most) throw invalid(`notifications.${kind} may contain at most ${most} ${what}`)
  return texts
}

function wants(requested: Record<string, unknown>, kind: string): boolean {
  const value = requested[kind]
  if (value !== undefined && typeof value !== 'boolean') throw invalid(`notifications.${kind} must be a boolean`)
  return value === true
}

/** What a URI uses beside its text. */
const URI_BYTES = 100

/** What the URIs of a subscription use. */
export function bytesOfUris(uris: readonly string[]): number {
  return uris.reduce((bytes, uri) => bytes + Buffer.byteLength(uri) + URI_BYTES, 0)
}

function evict({ end }: Subscription): void {
  end()
}

/** An update tells that a resource exists and has changed, so subscribing needs the scopes of every resource that it names. */
export function scopesOfSubscription(
  method: unknown,
  params: Record<string, unknown> | undefined,
  scopesOf: ScopesOf,
): readonly string[] | undefined {
  switch (method) {
    case 'resources/subscribe':
      return scopesOfUris([params?.['uri']], scopesOf)
    case 'subscriptions/listen': {
      const notifications = params?.['notifications']
      return isObject(notifications) ? scopesOfUris(notifications['resourceSubscriptions'], scopesOf) : undefined
    }
    default:
      return undefined
  }
}

function scopesOfUris(uris: unknown, scopesOf: ScopesOf): readonly string[] | undefined {
  // Anything else is not looked up: `readFilter` refuses it.
  if (!Array.isArray(uris) || uris.length > MOST_URIS) return undefined
  const scopes = new Set<string>()
  for (const uri of uris) {
    if (typeof uri !== 'string') continue
    for (const scope of scopesOf(uri) ?? []) scopes.add(scope)
  }
  return scopes.size === 0 ? undefined : [...scopes]
}

function seesAll(): boolean {
  return true
}

function noScopes(): undefined {
  return undefined
}

/** A bus within one process: `publish` calls the listeners. */
export function inProcessBus(): Bus {
  const listeners = new Set<(change: ChangeEvent) => void>()
  return {
    publish: (change) => {
      for (const listener of listeners) listener(change)
    },
    subscribe: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

function invalid(why: string): ProtocolError {
  return new ProtocolError(INVALID_PARAMS, `Invalid params: ${why}`)
}
