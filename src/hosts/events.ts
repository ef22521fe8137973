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

/** Writes a comment to quiet streams now and then, so that no proxy closes them as idle. */
export class KeepAlive {
  readonly #everyMs: number
  readonly #streams = new Set<(comment: string) => void>()
  #timer: NodeJS.Timeout | undefined

  constructor(everyMs: number) {
    this.#everyMs = everyMs
  }

  /** One timer for all streams, and no timer while there is no stream. */
  add(write: (comment: string) => void): void {
    this.#streams.add(write)
    this.#timer ??= setInterval(() => {
      for (const each of this.#streams) each(':\n\n')
    }, this.#everyMs).unref()
  }

  delete(write: (comment: string) => void): void {
    this.#streams.delete(write)
    if (this.#streams.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
