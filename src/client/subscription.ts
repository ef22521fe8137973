// A stream of changes that the server tells of. When it is lost, or the server ends it, it is listened to again.
import { ProtocolError } from '../protocol/errors.ts'
import { badResponse, ClientError, wrongOption } from './errors.ts'
import { ChangeQueue } from './inbox.ts'
import type { Connection, ListName } from './connection.ts'
import type { Lists } from './lists.ts'
import { isObject } from '../protocol/json.ts'

/** What to be told of. */
export interface Subscription {
  tools?: boolean
  prompts?: boolean
  /** Whether there are other resources than before. */
  resources?: boolean
  /** Resources whose content is watched. */
  uris?: readonly string[]
}

export type ServerChange =
  /** The first of all: the server tells of changes from now on, and this is what of the wish it can do. */
  | { readonly type: 'acknowledged'; readonly accepted: Subscription }
  | { readonly type: ListName }
  | { readonly type: 'updated'; readonly uri: string }
  /** The stream was lost, or ended by the server, and is there again. Something may have been missed. */
  | { readonly type: 'reconnected'; readonly accepted: Subscription }
  /** More has changed than was taken in time. */
  | { readonly type: 'missed' }

export interface SubscriptionContext {
  readonly connection: Connection
  /** For the server to acknowledge. */
  readonly timeoutMs: number
  readonly lists: Lists
}

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 10_000

/** A stream that held for so long was a good one, and the next may be tried at once. */
const STEADY_MS = 5_000

const FIRST_TRIES = 3

/** Many of them may wait for a slow consumer. */
const LONGEST_URI = 8_192

/** Changes of a kind that wait for a slow consumer are one. Ends with the signal, the client, or the consumer's loop. */
export async function* subscribe(
  host: SubscriptionContext,
  wish: Subscription,
  signal: AbortSignal | undefined,
): AsyncGenerator<ServerChange, void, undefined> {
  const members = `"notifications":${JSON.stringify(filterOf(wish))}`
  const over = new AbortController()
  const stop = (): void => over.abort()
  signal?.addEventListener('abort', stop, { once: true })
  if (signal?.aborted) stop()
  const inbox = new ChangeQueue<ServerChange>({ type: 'missed' })
  const listening = new Listening(host, wish, members, over.signal, inbox).run()
  // It is awaited below, and may fail long before that.
  listening.catch(() => {})
  try {
    for (;;) {
      const change = inbox.take()
      if (change !== undefined) yield change
      else if (inbox.isOver) return await listening
      else await inbox.more()
    }
  } finally {
    signal?.removeEventListener('abort', stop)
    stop()
    await listening.catch(() => {})
  }
}

class Listening {
  readonly #context: SubscriptionContext
  readonly #wish: Subscription
  readonly #members: string
  readonly #over: AbortSignal
  readonly #inbox: ChangeQueue<ServerChange>
  #isAcknowledged = false
  #acknowledgedAt = 0
  /** Since the last steady stream. */
  #ends = 0

  constructor(
    host: SubscriptionContext,
    wish: Subscription,
    members: string,
    over: AbortSignal,
    inbox: ChangeQueue<ServerChange>,
  ) {
    this.#context = host
    this.#wish = wish
    this.#members = members
    this.#over = over
    this.#inbox = inbox
  }

  /** Until it is over. Fails where the server refuses, or was never there. */
  async run(): Promise<void> {
    try {
      while (!this.#over.aborted && !this.#context.connection.isClosed) await this.#listen()
    } finally {
      this.#inbox.end()
    }
  }

  async #listen(): Promise<void> {
    const { connection, timeoutMs } = this.#context
    const attempt = connection.openDeadline('subscriptions/listen', Infinity, this.#over)
    let silence: NodeJS.Timeout | undefined
    this.#acknowledgedAt = 0
    try {
      if (this.#ends > 0) await attempt.sleep(Math.min(FIRST_PAUSE_MS * 2 ** (this.#ends - 1), LONGEST_PAUSE_MS))
      silence = setTimeout(() => attempt.abort(unacknowledged(timeoutMs)), Math.min(timeoutMs, LONGEST_TIMER))
      const { error } = await connection.listen(this.#members, attempt, (what, params) => {
        if (what === 'subscriptions/acknowledged') clearTimeout(silence)
        this.#told(what, params)
      })
      if (error !== undefined) throw new ProtocolError(error.code, error.message, error.data)
      if (this.#acknowledgedAt === 0) throw badResponse('the subscription ended before it was acknowledged')
      this.#ended()
    } catch (error) {
      if (this.#over.aborted || connection.isClosed) return
      this.#ended()
      if (!isTrouble(error) || (!this.#isAcknowledged && this.#ends >= FIRST_TRIES)) throw error
    } finally {
      clearTimeout(silence)
      connection.closeDeadline(attempt)
    }
  }

  #ended(): void {
    const wasSteady = this.#acknowledgedAt > 0 && performance.now() - this.#acknowledgedAt > STEADY_MS
    this.#ends = wasSteady ? 1 : this.#ends + 1
  }

  #told(what: string, params: Record<string, unknown>): void {
    switch (what) {
      case 'subscriptions/acknowledged':
        return this.#acknowledged(readFilter(params['notifications']))
      case 'tools/list_changed':
        return this.#inbox.put('tools', { type: 'tools' })
      case 'prompts/list_changed':
        return this.#inbox.put('prompts', { type: 'prompts' })
      case 'resources/list_changed':
        return this.#inbox.put('resources', { type: 'resources' })
      case 'resources/updated': {
        const { uri } = params
        if (typeof uri !== 'string') return
        if (uri.length <= LONGEST_URI) this.#inbox.put(`updated ${uri}`, { type: 'updated', uri })
        else this.#inbox.put('missed', { type: 'missed' })
      }
    }
  }

  #acknowledged(accepted: Subscription): void {
    const isFirst = !this.#isAcknowledged
    this.#isAcknowledged = true
    this.#acknowledgedAt = performance.now()
    if (isFirst) return this.#inbox.put('acknowledged', { type: 'acknowledged', accepted })
    for (const list of LISTS) if (this.#wish[list] === true) this.#context.lists.drop(list)
    this.#inbox.put('reconnected', { type: 'reconnected', accepted })
  }
}

const LISTS: readonly ListName[] = ['tools', 'prompts', 'resources']
const LONGEST_TIMER = 2 ** 31 - 1

function filterOf({ tools, prompts, resources, uris }: Subscription): object {
  if (uris !== undefined && !(Array.isArray(uris) && uris.every((uri) => typeof uri === 'string'))) {
    throw wrongOption('uris must be a list of URIs.')
  }
  return {
    ...(tools === true && { toolsListChanged: true }),
    ...(prompts === true && { promptsListChanged: true }),
    ...(resources === true && { resourcesListChanged: true }),
    ...(uris !== undefined && { resourceSubscriptions: uris }),
  }
}

function readFilter(filter: unknown): Subscription {
  const {
    toolsListChanged,
    promptsListChanged,
    resourcesListChanged,
    resourceSubscriptions: uris,
  } = isObject(filter) ? filter : {}
  return {
    ...(toolsListChanged === true && { tools: true }),
    ...(promptsListChanged === true && { prompts: true }),
    ...(resourcesListChanged === true && { resources: true }),
    ...(Array.isArray(uris) && { uris: uris.filter((uri) => typeof uri === 'string') }),
  }
}

/** Passes, as a rule. */
function isTrouble(error: unknown): boolean {
  return error instanceof ClientError && ['LOST', 'CONNECTION', 'TIMEOUT'].includes(error.code)
}

function unacknowledged(ms: number): ClientError {
  return new ClientError('TIMEOUT', `The server has not acknowledged the subscription within ${ms} ms (timeoutMs).`)
}
