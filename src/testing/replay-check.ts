// Whether each pass of a flow does again what the pass before it did.
import { isDeepStrictEqual } from 'node:util'
import type { TraceEvent } from '../flow/carrier.ts'
import { SCOPE_SEPARATOR } from '../flow/scopes.ts'
import { ReplayMismatch, shown } from './mismatch.ts'

export class Watch {
  readonly #texts = new Map<string, string>()
  readonly #ran = new Set<string>()
  /** The first thing that was wrong. Kept until the pass is over: thrown inside it, the handler might catch it. */
  #found: ReplayMismatch | undefined

  asked(key: string, text: string): void {
    const before = this.#texts.get(key)
    if (before === undefined) this.#texts.set(key, text)
    else if (before !== text) {
      this.#found ??= new ReplayMismatch(
        `The question "${key}" changed from one pass to the next. It was ${before} and is now ${text}. Make questions of arguments and recorded values only; io.now(), io.random() and io.uuid() are the same on every pass.`,
        key,
        before,
        text,
      )
    }
  }

  ran(key: string): void {
    if (this.#ran.has(key)) {
      this.#found ??= new ReplayMismatch(
        `The step "${key}" ran twice in one flow: it was run, and recorded, and then run again.`,
        key,
        'run once',
        'run twice',
      )
    }
    this.#ran.add(key)
  }

  /** Throws what was wrong with the pass that has just ended, given its trace and the one before it. */
  passed(before: readonly TraceEvent[], trace: readonly TraceEvent[], failed: boolean): void {
    if (this.#found) throw this.#found
    checkBegins(before, trace, failed)
  }
}

/** Throws unless the trace begins as the one before it went. A pass that failed may have ended before it came so far. */
function checkBegins(before: readonly TraceEvent[], trace: readonly TraceEvent[], failed: boolean): void {
  for (const [index, was] of lasting(before).entries()) {
    const is = trace[index]
    if (is === undefined && failed) return
    if (is === undefined || !same(was, is)) {
      throw new ReplayMismatch(
        `A later pass did not go as the pass before it: "${was.key}" ${told(was)}, and then, in its place, ${is ? `"${is.key}" ${told(is)}` : 'nothing happened'}. Between io calls a handler may depend only on its arguments and on what io gave it, and so must every key.`,
        was.key,
        was,
        is,
      )
    }
  }
}

/** What the next pass will see again: a scope that is over is one event, without what went on inside it. */
function lasting(trace: readonly TraceEvent[]): TraceEvent[] {
  const scopes = new Set<string>()
  const over: string[] = []
  for (const event of trace) {
    if (event.type === 'call' && event.kind === 'scope') scopes.add(event.key)
    if (event.type === 'settle' && scopes.has(event.key)) over.push(event.key + SCOPE_SEPARATOR)
  }
  return trace.filter(({ key }) => !over.some((prefix) => key.startsWith(prefix)))
}

function same(one: TraceEvent, other: TraceEvent): boolean {
  return isDeepStrictEqual(essence(one), essence(other))
}

function essence(event: TraceEvent): unknown[] {
  if (event.type === 'call') return ['call', event.key, event.kind]
  return ['settle', event.key, event.value, essenceOfError(event.error)]
}

/** What of an error lasts through a journal. */
export function essenceOfError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  return [error.name, error.message, 'code' in error ? error.code : undefined]
}

function told(event: TraceEvent): string {
  if (event.type === 'call') return `was called (io.${event.kind})`
  return 'error' in event ? `failed with ${shown(event.error)}` : `gave ${shown(event.value)}`
}
