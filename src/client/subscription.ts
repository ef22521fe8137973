// A subscription to changes on the server. It is opened again when it is lost or the server ends it.
import { backoff } from '../protocol/backoff.ts'
import { isObject } from '../protocol/json.ts'
import { shown } from '../protocol/text.ts'
import type { Connection } from './connection.ts'
import { MAX_TIMER_MS } from './deadline.ts'
import { badResponse, ClientError, isConnectionLoss, received, retryAdviceOf, wrongOption } from './errors.ts'
import type { Lists } from './lists.ts'
import type { ListName } from './notifications.ts'
import { fits, MAX_BYTES } from './server-text.ts'

/** Which changes to report. */
export interface Subscription {
  /** The list of tools has changed. Default false. */
  tools?: boolean
  /** The list of prompts has changed. Default false. */
  prompts?: boolean
  /** The list of resources has changed. Default false. */
  resources?: boolean
  /** Resources whose content is watched. Default: none. */
  uris?: readonly string[]
}

/** What `client.subscribe()` yields: a list or a resource changed, or changes may have been missed. */
export type ServerChange =
  /** Always the first: the server reports changes from now on. `accepted` is the part of the subscription that it supports. */
  | { readonly type: 'acknowledged'; readonly accepted: Subscription }
  | { readonly type: ListName }
  | { readonly type: 'updated'; readonly uri: string }
  /** The stream was lost, or ended by the server, and is open again. Changes may have been missed. */
  | { readonly type: 'reconnected'; readonly accepted: Subscription }
  /** There were more changes than could be queued. */
  | { readonly type: 'missed' }

export interface SubscriptionContext {
  readonly connection: Connection
  /** For the acknowledgement of the server. */
  readonly timeoutMs: number
  readonly lists: Lists
}

const REOPEN = { firstMs: 100, maxMs: 10_000 }

/** After a stream that was open this long, the backoff starts again. */
const STABLE_MS = 5_000

const MAX_FIRST_ATTEMPTS = 3

/** Ends with the signal, the client, or the reader's loop. */
export async function* subscribe(
  context: SubscriptionContext,
  wish: Subscription,
  signal: AbortSignal | undefined,
): AsyncGenerator<ServerChange, void, undefined> {
  const filter = filterOf(wish)
  const ended = new AbortController()
  const end = (): void => ended.abort()
  signal?.addEventListener('abort', end, { once: true })
  if (signal?.aborted) end()
  const queue = new ChangeQueue<ServerChange>({ type: 'missed' })
  const running = new SubscriptionStream(context, { wish, filter }, ended.signal, queue).run()
  // It is awaited below, and may fail long before that.
  running.catch(() => {})
  try {
    for (;;) {
      const change = queue.take()
      if (change !== undefined) yield change
      else if (queue.isEnded) return await running
      else await queue.more()
    }
  } finally {
    signal?.removeEventListener('abort', end)
    end()
    await running.catch(() => {})
  }
}

class SubscriptionStream {
  readonly #context: SubscriptionContext
  readonly #wish: Subscription
  readonly #filter: Readonly<Record<string, unknown>>
  readonly #ended: AbortSignal
  readonly #queue: ChangeQueue<ServerChange>
  #isAcknowledged = false
  #acknowledgedAt = 0
  /** How often the stream has ended since it was stable. */
  #ends = 0

  constructor(
    context: SubscriptionContext,
    { wish, filter }: { wish: Subscription; filter: Readonly<Record<string, unknown>> },
    ended: AbortSignal,
    queue: ChangeQueue<ServerChange>,
  ) {
    this.#context = context
    this.#wish = wish
    this.#filter = filter
    this.#ended = ended
    this.#queue = queue
  }

  /** Rejects if the server refuses the subscription, or could never be reached. */
  async run(): Promise<void> {
    try {
      while (!this.#ended.aborted && !this.#context.connection.isClosed) await this.#listen()
    } finally {
      this.#queue.end()
    }
  }

  async #listen(): Promise<void> {
    const { connection, timeoutMs } = this.#context
    const attempt = connection.openDeadline('subscriptions/listen', Infinity, this.#ended)
    let timer: NodeJS.Timeout | undefined
    this.#acknowledgedAt = 0
    try {
      if (this.#ends > 0) await attempt.sleep(backoff(this.#ends, REOPEN))
      timer = setTimeout(() => attempt.abort(notAcknowledged(timeoutMs)), Math.min(timeoutMs, MAX_TIMER_MS))
      const { error } = await connection.listen(this.#filter, attempt, (what, params) => {
        if (what === 'subscriptions/acknowledged') clearTimeout(timer)
        this.#receive(what, params)
      })
      if (error !== undefined) throw received(error)
      if (this.#acknowledgedAt === 0) throw badResponse('the subscription ended before it was acknowledged')
      this.#countEnd()
    } catch (error) {
      if (this.#ended.aborted || connection.isClosed) return
      this.#countEnd()
      if (!isTransient(error) || (!this.#isAcknowledged && this.#ends >= MAX_FIRST_ATTEMPTS)) throw error
    } finally {
      clearTimeout(timer)
      connection.closeDeadline(attempt)
    }
  }

  #countEnd(): void {
    const wasStable = this.#acknowledgedAt > 0 && performance.now() - this.#acknowledgedAt > STABLE_MS
    this.#ends = wasStable ? 1 : this.#ends + 1
  }

  #receive(what: string, params: Record<string, unknown>): void {
    switch (what) {
      case 'subscriptions/acknowledged':
        return this.#acknowledge(readFilter(params['notifications'], this.#wish))
      case 'tools/list_changed':
        return this.#queue.put('tools', { type: 'tools' })
      case 'prompts/list_changed':
        return this.#queue.put('prompts', { type: 'prompts' })
      case 'resources/list_changed':
        return this.#queue.put('resources', { type: 'resources' })
      case 'resources/updated': {
        const { uri } = params
        if (typeof uri !== 'string') return
        if (fits(uri, MAX_BYTES.uri)) this.#queue.put(`updated ${uri}`, { type: 'updated', uri })
        else this.#queue.put('missed', { type: 'missed' })
      }
    }
  }

  #acknowledge(accepted: Subscription): void {
    const isFirst = !this.#isAcknowledged
    this.#isAcknowledged = true
    this.#acknowledgedAt = performance.now()
    if (isFirst) return this.#queue.put('acknowledged', { type: 'acknowledged', accepted })
    for (const list of LISTS) if (this.#wish[list] === true) this.#context.lists.drop(list)
    this.#context.lists.reads.drop()
    this.#queue.put('reconnected', { type: 'reconnected', accepted })
  }
}

const MAX_QUEUED = 1_000

/** Changes for a reader. Equal changes are merged and the length is bounded, so that a slow reader costs little memory. */
export class ChangeQueue<T> {
  readonly #changes = new Map<string, T>()
  #wake: () => void = () => {}
  #isEnded = false
  readonly #missed: T

  /** `missed` replaces all changes that arrive while the queue is full. */
  constructor(missed: T) {
    this.#missed = missed
  }

  /** True if nothing more will arrive. */
  get isEnded(): boolean {
    return this.#isEnded
  }

  /** A change is dropped if one with the same key is queued already. */
  put(key: string, change: T): void {
    if (this.#changes.has(key)) return
    if (this.#changes.size < MAX_QUEUED) this.#changes.set(key, change)
    else this.#changes.set('missed', this.#missed)
    this.#wake()
  }

  /** Removes and returns the oldest change. */
  take(): T | undefined {
    for (const [key, change] of this.#changes) {
      this.#changes.delete(key)
      return change
    }
    return undefined
  }

  /** Resolves as soon as the queue has a change, or has ended. */
  more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
      if (this.#changes.size > 0 || this.#isEnded) resolve()
    })
  }

  end(): void {
    this.#isEnded = true
    this.#wake()
  }
}

const LISTS: readonly ListName[] = ['tools', 'prompts', 'resources']

function filterOf({ tools, prompts, resources, uris }: Subscription): Record<string, unknown> {
  if (uris !== undefined && !(Array.isArray(uris) && uris.every((uri) => typeof uri === 'string'))) {
    throw wrongOption(`uris must be a list of strings, got ${shown(uris)}.`)
  }
  return {
    ...(tools === true && { toolsListChanged: true }),
    ...(prompts === true && { promptsListChanged: true }),
    ...(resources === true && { resourcesListChanged: true }),
    ...(uris !== undefined && { resourceSubscriptions: [...uris] }),
  }
}

/** What the server accepts is a part of the wish, so nothing else is kept. */
function readFilter(filter: unknown, { uris: wished = [] }: Subscription): Subscription {
  const {
    toolsListChanged,
    promptsListChanged,
    resourcesListChanged,
    resourceSubscriptions: uris,
  } = isObject(filter) ? filter : {}
  const accepted = Array.isArray(uris) ? new Set<unknown>(uris) : undefined
  return {
    ...(toolsListChanged === true && { tools: true }),
    ...(promptsListChanged === true && { prompts: true }),
    ...(resourcesListChanged === true && { resources: true }),
    ...(accepted !== undefined && { uris: wished.filter((uri) => accepted.has(uri)) }),
  }
}

function isTransient(error: unknown): boolean {
  return (
    isConnectionLoss(error) ||
    retryAdviceOf(error) !== undefined ||
    (error instanceof ClientError && error.code === 'TIMEOUT')
  )
}

function notAcknowledged(ms: number): ClientError {
  return new ClientError(
    'TIMEOUT',
    `subscriptions/listen: the server did not acknowledge the subscription within ${ms} ms (timeoutMs).`,
  )
}
