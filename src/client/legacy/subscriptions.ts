// Subscriptions as a modern client makes them, out of what older servers have: changes told without being asked for, and
// resources subscribed to one by one.
import type { Logger } from '../../protocol/logger.ts'
import type { ServerCapabilities } from '../../protocol/messages.ts'
import { ClientError, lost } from '../errors.ts'
import { isObject } from '../../protocol/json.ts'
import type { OutgoingRequest, ReceiveMessage, ResponseCallbacks } from '../transports/transport.ts'

export interface LegacySubscriptionsOptions {
  readonly logger: Logger
  readonly receive: ReceiveMessage
  /** Introduced to the server, and listening: gives what it can do, or `undefined` where it has no way to tell. */
  ready(): Promise<ServerCapabilities | undefined>
  /** Fails where the server is not there; gives whether it has done it. */
  request(method: string, params: object): Promise<boolean>
}

interface LegacySubscription {
  readonly wish: SubscriptionFilter
  readonly callbacks: ResponseCallbacks
  /** Those that the server has taken. */
  readonly uris: Set<string>
  /** Told before the acknowledgement, which comes first. */
  early: Record<string, unknown>[] | undefined
}

interface SubscriptionFilter {
  readonly toolsListChanged?: boolean
  readonly promptsListChanged?: boolean
  readonly resourcesListChanged?: boolean
  readonly resourceSubscriptions?: readonly string[]
}

const MOST_EARLY = 1_000

export class LegacySubscriptions {
  readonly #watched: LegacySubscriptionsOptions
  readonly #watchers = new Map<number, LegacySubscription>()

  constructor(watched: LegacySubscriptionsOptions) {
    this.#watched = watched
  }

  /** Takes the place of the request `subscriptions/listen`. Gives what ends it. */
  begin({ id, text }: OutgoingRequest, callbacks: ResponseCallbacks): () => void {
    const { params } = JSON.parse(text) as { params: { notifications: SubscriptionFilter } }
    const watcher: LegacySubscription = { wish: params.notifications, callbacks, uris: new Set(), early: [] }
    this.#watchers.set(id, watcher)
    this.#acknowledge(id, watcher).catch((error: unknown) => {
      if (this.#watchers.delete(id)) callbacks.reject(error as ClientError)
    })
    return () => {
      if (this.#watchers.delete(id)) void this.#leave(watcher)
    }
  }

  /** Gives whether somebody was told. */
  tell(message: Record<string, unknown>): boolean {
    const { method, params } = message
    let isTold = false
    const { uri } = isObject(params) ? params : {}
    for (const [id, { wish, uris, early }] of this.#watchers) {
      if (method === 'notifications/resources/updated' ? !isWithin(uri, uris) : !isListWished(method, wish)) continue
      isTold = true
      if (early === undefined) this.#watched.receive(message, id)
      else if (early.length < MOST_EARLY) early.push(message)
    }
    return isTold
  }

  /** They begin anew, if they are still of interest, and know that they may have missed something. */
  missed(): void {
    for (const [id, { callbacks }] of this.#watchers) {
      this.#watchers.delete(id)
      callbacks.reject(lost('the server has to be listened to anew'))
    }
  }

  async #acknowledge(id: number, watcher: LegacySubscription): Promise<void> {
    const { wish, uris, early = [] } = watcher
    const capabilities = await this.#watched.ready()
    const { tools, prompts, resources } = capabilities ?? {}
    if (resources?.subscribe === true) {
      for (const uri of wish.resourceSubscriptions ?? []) {
        if (!this.#watchers.has(id)) return
        // Before, because the first change may come together with the response.
        uris.add(uri)
        if (!(await this.#watched.request('resources/subscribe', { uri }))) uris.delete(uri)
      }
    }
    if (!this.#watchers.has(id)) return
    const notifications = {
      ...(wish.toolsListChanged && tools?.listChanged && { toolsListChanged: true }),
      ...(wish.promptsListChanged && prompts?.listChanged && { promptsListChanged: true }),
      ...(wish.resourcesListChanged && resources?.listChanged && { resourcesListChanged: true }),
      ...(wish.resourceSubscriptions && { resourceSubscriptions: [...uris] }),
    }
    this.#watched.receive({ method: 'notifications/subscriptions/acknowledged', params: { notifications } }, id)
    watcher.early = undefined
    for (const message of early) this.#watched.receive(message, id)
  }

  async #leave({ uris }: LegacySubscription): Promise<void> {
    const others = [...this.#watchers.values()]
    for (const uri of uris) {
      if (others.some((other) => other.uris.has(uri))) continue
      await this.#watched.request('resources/unsubscribe', { uri }).catch((error: unknown) => {
        if (!(error instanceof ClientError && error.code === 'CLOSED')) {
          this.#watched.logger.warn('A resource could not be unsubscribed from.', { uri, error })
        }
      })
    }
  }
}

/** Or a part of one. */
function isWithin(uri: unknown, uris: ReadonlySet<string>): boolean {
  if (typeof uri !== 'string') return false
  return uris.has(uri) || [...uris].some((whole) => uri.startsWith(whole))
}

function isListWished(method: unknown, wish: SubscriptionFilter): boolean {
  switch (method) {
    case 'notifications/tools/list_changed':
      return wish.toolsListChanged === true
    case 'notifications/prompts/list_changed':
      return wish.promptsListChanged === true
    case 'notifications/resources/list_changed':
      return wish.resourcesListChanged === true
    default:
      return false
  }
}
