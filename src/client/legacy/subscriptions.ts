// The subscriptions of 2026-07-28, on top of what legacy servers have: they send list changes unasked, and resources are
// subscribed to one by one.
import type { Logger } from '../../protocol/logger.ts'
import type { ServerCapabilities } from '../../protocol/messages.ts'
import { ClientError, lost } from '../errors.ts'
import { isObject } from '../../protocol/json.ts'
import { fits, MAX_BYTES } from '../server-text.ts'
import type { OutgoingRequest, ReceiveMessage, ResponseCallbacks } from '../transports/transport.ts'

export interface LegacySubscriptionsOptions {
  readonly logger: Logger
  readonly receive: ReceiveMessage
  /** Waits until the session listens. Returns the server's capabilities, or undefined if it cannot send changes. */
  ready(): Promise<ServerCapabilities | undefined>
  /** Returns false if the server refuses. Rejects if it cannot be reached. */
  request(method: string, params: object): Promise<boolean>
}

interface LegacySubscription {
  readonly filter: SubscriptionFilter
  readonly callbacks: ResponseCallbacks
  /** The resources that the server has accepted. */
  readonly uris: Set<string>
  /** Changes that arrived before the acknowledgement, which has to come first. Undefined after it. */
  early: EarlyChange[] | undefined
}

interface SubscriptionFilter {
  readonly toolsListChanged?: boolean
  readonly promptsListChanged?: boolean
  readonly resourcesListChanged?: boolean
  readonly resourceSubscriptions?: readonly string[]
}

/** No more of a message than its subscriber reads. */
interface EarlyChange extends Record<string, unknown> {
  readonly method: unknown
  readonly params: { readonly uri?: unknown }
}

const MAX_EARLY = 1_000

/** Stands for a URI that is too long to be kept. The subscriber takes it for a change that was missed. */
const TOO_LONG = 'x'.repeat(MAX_BYTES.uri + 1)

export class LegacySubscriptions {
  readonly #options: LegacySubscriptionsOptions
  readonly #subscriptions = new Map<number, LegacySubscription>()

  constructor(options: LegacySubscriptionsOptions) {
    this.#options = options
  }

  /** Handles the request `subscriptions/listen`. Returns a function that ends the subscription. */
  add({ id, params }: OutgoingRequest, callbacks: ResponseCallbacks): () => void {
    const { notifications = {} } = params as { notifications?: SubscriptionFilter }
    const subscription: LegacySubscription = { filter: notifications, callbacks, uris: new Set(), early: [] }
    this.#subscriptions.set(id, subscription)
    this.#acknowledge(id, subscription).catch((error: unknown) => {
      if (this.#subscriptions.delete(id)) callbacks.reject(error as ClientError)
    })
    return () => {
      if (this.#subscriptions.delete(id)) void this.#unsubscribe(subscription)
    }
  }

  /** Returns true if a subscription takes the notification. */
  receive(message: Record<string, unknown>): boolean {
    const { method, params } = message
    let isTaken = false
    const { uri } = isObject(params) ? params : {}
    for (const [id, { filter, uris, early }] of this.#subscriptions) {
      if (method === 'notifications/resources/updated' ? !isWithin(uri, uris) : !includesList(filter, method)) continue
      isTaken = true
      if (early === undefined) this.#options.receive(message, id)
      else if (early.length < MAX_EARLY) early.push(earlyChange(method, uri))
    }
    return isTaken
  }

  /** Fails all subscriptions, so that they are opened again and know that changes may have been missed. */
  fail(): void {
    for (const [id, { callbacks }] of this.#subscriptions) {
      this.#subscriptions.delete(id)
      callbacks.reject(lost('the subscription has to be opened again'))
    }
  }

  async #acknowledge(id: number, subscription: LegacySubscription): Promise<void> {
    const { filter, uris, early = [] } = subscription
    const capabilities = await this.#options.ready()
    const { tools, prompts, resources } = capabilities ?? {}
    if (resources?.subscribe === true) {
      for (const uri of filter.resourceSubscriptions ?? []) {
        if (!this.#subscriptions.has(id)) return
        // Added first, because a change may arrive together with the response.
        uris.add(uri)
        if (!(await this.#options.request('resources/subscribe', { uri }))) uris.delete(uri)
      }
    }
    if (!this.#subscriptions.has(id)) return
    const notifications = {
      ...(filter.toolsListChanged && tools?.listChanged && { toolsListChanged: true }),
      ...(filter.promptsListChanged && prompts?.listChanged && { promptsListChanged: true }),
      ...(filter.resourcesListChanged && resources?.listChanged && { resourcesListChanged: true }),
      ...(filter.resourceSubscriptions && { resourceSubscriptions: [...uris] }),
    }
    this.#options.receive({ method: 'notifications/subscriptions/acknowledged', params: { notifications } }, id)
    subscription.early = undefined
    for (const message of early) this.#options.receive(message, id)
  }

  async #unsubscribe({ uris }: LegacySubscription): Promise<void> {
    const others = [...this.#subscriptions.values()]
    for (const uri of uris) {
      if (others.some((other) => other.uris.has(uri))) continue
      await this.#options.request('resources/unsubscribe', { uri }).catch((error: unknown) => {
        if (!(error instanceof ClientError && error.code === 'CLOSED')) {
          this.#options.logger.warn('resources/unsubscribe failed.', { uri, error })
        }
      })
    }
  }
}

function earlyChange(method: unknown, uri: unknown): EarlyChange {
  if (typeof uri !== 'string') return { method, params: {} }
  return { method, params: { uri: fits(uri, MAX_BYTES.uri) ? uri : TOO_LONG } }
}

/** True for a watched resource, or a part of one. */
function isWithin(uri: unknown, uris: ReadonlySet<string>): boolean {
  if (typeof uri !== 'string') return false
  return uris.has(uri) || [...uris].some((whole) => uri.startsWith(whole))
}

function includesList(filter: SubscriptionFilter, method: unknown): boolean {
  switch (method) {
    case 'notifications/tools/list_changed':
      return filter.toolsListChanged === true
    case 'notifications/prompts/list_changed':
      return filter.promptsListChanged === true
    case 'notifications/resources/list_changed':
      return filter.resourcesListChanged === true
    default:
      return false
  }
}
