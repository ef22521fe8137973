// What only strict passes look for, because it costs time or memory: calls that nothing awaits, questions that change, steps that
// are gone. In production none of this runs.
import type { Journal } from './journal.ts'

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

const MOST_KEYS = 10_000

/** The keys that each handler has used in this process, in any flow. */
const usedKeys = new WeakMap<object, Set<string>>()

/** `handler` is any object that lives as long as the registration of the handler. */
export function rememberKey(handler: object, key: string): void {
  let keys = usedKeys.get(handler)
  if (keys === undefined) usedKeys.set(handler, (keys = new Set()))
  if (keys.size < MOST_KEYS) keys.add(withoutIndex(key))
}

/**
 * The first recorded step or scope that the handler did not call, and has never called in this process: it was renamed or removed.
 * A key that it has called before is still in its code. It took another branch, as after a race with a timer.
 */
export function goneStep(handler: object, journal: Journal, calls: { has(key: string): boolean }): string | undefined {
  const used = usedKeys.get(handler)
  if (used !== undefined && used.size >= MOST_KEYS) return undefined
  for (let i = 0; i < journal.length; i += 1) {
    const entry = journal.at(i)
    if (entry === undefined || entry.tag === 'a' || calls.has(entry.key)) continue
    if (used === undefined || !used.has(withoutIndex(entry.key))) return entry.key
  }
  return undefined
}

/** A loop may call fewer items than another flow did. */
function withoutIndex(key: string): string {
  return key.replaceAll(/\[[^\]]*\]/g, '[]')
}
