// Server-sent events, as both HTTP hosts write them.

export const EVENT_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache',
  'X-Accel-Buffering': 'no',
} as const

export function eventText(message: string): string {
  return `event: message\ndata: ${message}\n\n`
}

/** Clients must accept JSON and events. One that says it cannot read events gets none. */
export function acceptsEvents(accept: string | undefined): boolean {
  return accept === undefined || accept.includes('text/event-stream') || accept.includes('*/*')
}

const COMMENT = ':\n\n'

const { navigator } = globalThis as { navigator?: { userAgent?: string } }

/** Bun closes a connection that is silent for 10 seconds. */
export const DEFAULT_KEEP_ALIVE_MS = navigator?.userAgent?.startsWith('Bun/') ? 5_000 : 15_000

/** In a Worker a timer ends with the request that set it, and a response that waits without a timer is taken for hung. */
const IS_WORKER = navigator?.userAgent === 'Cloudflare-Workers'

/** Writes a comment to quiet streams now and then, so that no proxy closes them as idle. */
export class KeepAlive {
  readonly #everyMs: number
  readonly #streams = new Set<(comment: string) => void>()
  readonly #ownTimers = new Map<(comment: string) => void, NodeJS.Timeout>()
  #timer: NodeJS.Timeout | undefined

  constructor(everyMs: number) {
    this.#everyMs = everyMs
  }

  /** One timer for all streams, and no timer while there is no stream. */
  add(write: (comment: string) => void): void {
    if (IS_WORKER) return void this.#ownTimers.set(write, setInterval(write, this.#everyMs, COMMENT))
    this.#streams.add(write)
    this.#timer ??= setInterval(() => {
      for (const each of this.#streams) each(COMMENT)
    }, this.#everyMs).unref()
  }

  delete(write: (comment: string) => void): void {
    if (IS_WORKER) {
      clearInterval(this.#ownTimers.get(write))
      return void this.#ownTimers.delete(write)
    }
    this.#streams.delete(write)
    if (this.#streams.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
