// Checks that each pass of a flow repeats what the pass before it did.
import { inspect, isDeepStrictEqual } from 'node:util'
import type { TraceEvent } from '../flow/carrier.ts'
import { SCOPE_SEPARATOR } from '../flow/scopes.ts'
import { RallyError } from '../protocol/errors.ts'

/** The handler did something else when it was run again. `key` is the key of the io call, if it was one. */
export class ReplayMismatch extends RallyError {
  declare readonly code: 'REPLAY_MISMATCH'
  /** The key of the io call, if it was one. */
  readonly key: string | undefined
  /** What the handler did first. */
  readonly before: unknown
  /** What it did when it was run again. */
  readonly after: unknown

  constructor(message: string, key: string | undefined, before: unknown, after: unknown) {
    super('REPLAY_MISMATCH', message)
    this.key = key
    this.before = before
    this.after = after
  }

  /** The same error, with the options that reproduce it. */
  withOptions(options: string): ReplayMismatch {
    return new ReplayMismatch(`${this.message} To reproduce it: { ${options} }.`, this.key, this.before, this.after)
  }
}

export class ReplayCheck {
  readonly #texts = new Map<string, string>()
  readonly #ran = new Set<string>()
  /** The first mismatch. Thrown after the pass: inside the pass, the handler might catch it. */
  #found: ReplayMismatch | undefined

  asked(key: string, text: string): void {
    const before = this.#texts.get(key)
    if (before === undefined) this.#texts.set(key, text)
    else if (before !== text) {
      this.#found ??= new ReplayMismatch(
        `The question "${key}" changed from one pass to the next. It was ${before} and is now ${text}. Build questions from arguments and recorded values only; io.now(), io.random() and io.uuid() are the same in every pass.`,
        key,
        before,
        text,
      )
    }
  }

  ran(key: string): void {
    if (this.#ran.has(key)) {
      this.#found ??= new ReplayMismatch(
        `The step "${key}" ran twice in one flow, although its first result was recorded.`,
        key,
        'run once',
        'run twice',
      )
    }
    this.#ran.add(key)
  }

  /** Throws if something was wrong in the pass that has just ended. Takes its trace and the trace before it. */
  passed(before: readonly TraceEvent[], trace: readonly TraceEvent[], failed: boolean): void {
    if (this.#found) throw this.#found
    checkRepeats(before, trace, failed)
  }
}

/** Throws unless the trace starts with the whole trace before it. A failed pass may have ended earlier. */
function checkRepeats(before: readonly TraceEvent[], trace: readonly TraceEvent[], failed: boolean): void {
  for (const [index, was] of lasting(before).entries()) {
    const is = trace[index]
    if (is === undefined && failed) return
    if (is === undefined || !same(was, is)) {
      throw new ReplayMismatch(
        `A pass did not repeat the pass before it. Then: "${was.key}" ${described(was)}. Now: ${is ? `"${is.key}" ${described(is)}` : 'nothing'}. Between io calls, a handler and its keys may depend only on its arguments and on what io returned.`,
        was.key,
        was,
        is,
      )
    }
  }
}

/** What the next pass repeats: a scope that has settled is one event, without the events inside it. */
function lasting(trace: readonly TraceEvent[]): TraceEvent[] {
  const scopes = new Set<string>()
  const closed: string[] = []
  for (const event of trace) {
    if (event.type === 'call' && event.kind === 'scope') scopes.add(event.key)
    if (event.type === 'settle' && scopes.has(event.key)) closed.push(event.key + SCOPE_SEPARATOR)
  }
  return trace.filter(({ key }) => !closed.some((prefix) => key.startsWith(prefix)))
}

function same(one: TraceEvent, other: TraceEvent): boolean {
  return isDeepStrictEqual(comparable(one), comparable(other))
}

function comparable(event: TraceEvent): unknown[] {
  if (event.type === 'call') return ['call', event.key, event.kind]
  return ['settle', event.key, event.value, lastingError(event.error)]
}

/** The parts of an error that the journal keeps. */
export function lastingError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  return [error.name, error.message, 'code' in error ? error.code : undefined]
}

function described(event: TraceEvent): string {
  if (event.type === 'call') return `was called (io.${event.kind})`
  return 'error' in event ? `failed with ${shown(event.error)}` : `returned ${shown(event.value)}`
}

/** A value in an error message. */
export function shown(value: unknown): string {
  if (value instanceof Error) return `${value.name}: ${value.message}`
  return inspect(value, { depth: 6, breakLength: Infinity, maxStringLength: 300 })
}
