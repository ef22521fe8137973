// Routes the notifications of a server: progress and log messages to the caller's functions, changes to subscriptions and
// to the cached lists, finished visits to the calls that wait for them.
import { callSafely } from '../protocol/call-safely.ts'
import { isObject } from '../protocol/json.ts'
import type { Logger } from '../protocol/logger.ts'
import type { LoggingLevel, RequestId } from '../protocol/messages.ts'
import { META_SUBSCRIPTION } from '../protocol/revisions/2026-07-28.ts'
import { shown } from '../protocol/text.ts'
import type { LogEntry, ProgressUpdate } from './options.ts'
import { MAX_LENGTH, shortened } from './server-text.ts'

export interface NotificationOptions {
  readonly onLog: ((entry: LogEntry) => void) | undefined
  readonly logger: Logger
  /** A list of the server has changed. */
  readonly onListChanged: (list: ListName) => void
  /** A resource has changed. */
  readonly onResourceChanged: (uri: string) => void
}

export type ListName = 'tools' | 'prompts' | 'resources'

/** Receives a notification: its method without the prefix `notifications/`, and its params. */
export type NotificationListener = (what: string, params: Record<string, unknown>) => void

const PREFIX = 'notifications/'

export class Notifications {
  readonly #options: NotificationOptions
  /** By the id of the request. */
  readonly #progress = new Map<RequestId, (progress: ProgressUpdate) => void>()
  /** By the id of the request that subscribed. */
  readonly #subscriptions = new Map<RequestId, NotificationListener>()
  /** Called with each page that a legacy server reports as done. */
  readonly #visits = new Set<(page: string) => void>()

  constructor(options: NotificationOptions) {
    this.#options = options
  }

  /** Calls `onProgress` for the request until the returned function is called. */
  onProgress(id: RequestId, onProgress: (progress: ProgressUpdate) => void): () => void {
    this.#progress.set(id, onProgress)
    return () => void this.#progress.delete(id)
  }

  /** Calls the listener for the subscription with this id until the returned function is called. */
  onChange(id: RequestId, listener: NotificationListener): () => void {
    this.#subscriptions.set(id, listener)
    return () => void this.#subscriptions.delete(id)
  }

  /** Calls the listener with each page that is done until the returned function is called. */
  onVisit(listener: (page: string) => void): () => void {
    this.#visits.add(listener)
    return () => void this.#visits.delete(listener)
  }

  /** Takes an untrusted message that is not a response. `requestId` is the request whose stream it arrived on. */
  receive(message: Record<string, unknown>, requestId?: RequestId): void {
    const { method, id, params: given } = message
    if (typeof method !== 'string' || !method.startsWith(PREFIX)) {
      this.#options.logger.warn('The server sent a message that this client does not handle.', {
        method: shown(method),
        id: shown(id),
      })
      return
    }
    const params = isObject(given) ? given : {}
    const what = method.slice(PREFIX.length)
    if (what === 'progress') this.#receiveProgress(params)
    else if (what === 'message') this.#receiveLog(params)
    else if (what === 'elicitation/complete') this.#receiveVisit(params)
    else this.#receiveChange(what, params, requestId)
  }

  #receiveProgress({ progressToken, progress, total, message }: Record<string, unknown>): void {
    const onProgress = this.#progress.get(progressToken as RequestId)
    if (onProgress === undefined || typeof progress !== 'number') return
    this.tell(onProgress, {
      progress,
      ...(typeof total === 'number' && { total }),
      ...(typeof message === 'string' && { message: shortened(message, MAX_LENGTH.message) }),
    })
  }

  #receiveLog({ level, logger, data }: Record<string, unknown>): void {
    const { onLog } = this.#options
    if (onLog === undefined || typeof level !== 'string') return
    this.tell(onLog, {
      level: shortened(level, MAX_LENGTH.label) as LoggingLevel,
      data,
      ...(typeof logger === 'string' && { logger: shortened(logger, MAX_LENGTH.label) }),
    })
  }

  #receiveVisit({ elicitationId }: Record<string, unknown>): void {
    if (typeof elicitationId === 'string') for (const listener of this.#visits) listener(elicitationId)
  }

  #receiveChange(what: string, params: Record<string, unknown>, requestId: RequestId | undefined): void {
    const [list, changed] = what.split('/')
    if (changed === 'list_changed' && isListName(list)) this.#options.onListChanged(list)
    const { _meta: meta, uri } = params
    if (what === 'resources/updated' && typeof uri === 'string') this.#options.onResourceChanged(uri)
    const subscription = isObject(meta) ? (meta[META_SUBSCRIPTION] as RequestId) : undefined
    this.#subscriptions.get(requestId ?? subscription ?? '')?.(what, params)
  }

  /** Calls a function of the caller. An error in it does not fail the call. */
  tell<T>(listener: (value: T) => void, value: T): void {
    callSafely(
      () => listener(value),
      (error) => this.#options.logger.error('onProgress or onLog threw an error.', { error }),
    )
  }
}

function isListName(list: string | undefined): list is ListName {
  return list === 'tools' || list === 'prompts' || list === 'resources'
}
