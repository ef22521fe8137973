// What strict passes know about io calls, and others do not: whether anything waits for a call, where it was made, and the texts of
// questions. It costs time and memory, so in production none of this runs.

/** Enough for Rally's own frames and a few of the author's. */
const MOST_FRAMES = 12

/**
 * Watches the promise of an io call in a strict pass: whether anything waits for it, and where the call was made.
 * The promise settles in the same microtasks as any other, so that a handler sees the same order in production.
 */
export class Watch {
  observed = false
  readonly #trace: { stack?: string } = {}

  constructor(promise: Promise<unknown>) {
    // `await`, `then` and Promise.all read `constructor`; `return` in an async function reads only `then`.
    for (const name of ['constructor', 'then'] as const)
      void Object.defineProperty(promise, name, this.#seen(Promise.prototype[name]))
    // Its text is made only if it is read.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = MOST_FRAMES
    Error.captureStackTrace(this.#trace)
    Error.stackTraceLimit = stackTraceLimit
  }

  #seen(value: unknown): PropertyDescriptor {
    const get = (): unknown => {
      this.observed = true
      return value
    }
    return { get }
  }

  /** The stack from the author's line on. */
  get frames(): string[] {
    const lines = (this.#trace.stack ?? '').split('\n').filter((line) => line.trimStart().startsWith('at '))
    const from = lines.findIndex((line) => !OWN_FRAME.test(line))
    return lines.slice(Math.max(from, 0))
  }
}

/** A frame between the author's call and the promise. */
const OWN_FRAME = /[\\/](?:flow[\\/](?:strict|call|pass|io)|testing[\\/]rounds)\.[cm]?[jt]s|at new Promise /

/** The author's line in a frame of a stack: `deploy.ts:12:9`. */
export function lineOf(frame: string | undefined): string | undefined {
  return frame && (/\(?((?:file:\/\/)?[^\s()]+:\d+:\d+)\)?$/.exec(frame)?.[1] ?? undefined)
}

const MOST_TEXTS = 500

/** The texts of the questions that this process has asked last, by pin. A state carries only the pin. */
const texts = new Map<string, string>()

export function rememberText(pin: string, text: string): void {
  texts.delete(pin)
  texts.set(pin, text)
  for (const oldest of texts.keys()) {
    if (texts.size <= MOST_TEXTS) return
    texts.delete(oldest)
  }
}

/** The text of a question that this process has asked. */
export function textOf(pin: string): string | undefined {
  return texts.get(pin)
}
