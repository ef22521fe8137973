// One io call of a pass: its key, its promise, and how a journal entry settles it.
import type { Failure } from './errors.ts'
import { Declined, Expired, StepFailed } from './errors.ts'
import type { Action, AnswerPayload, Entry, Tag } from './journal.ts'
import type { Question } from './question.ts'
import { SCOPE_SEPARATOR } from './scopes.ts'
import { CallSite } from './strict.ts'

export type CallKind = 'ask' | 'step' | 'scope' | 'sleep'

const KEY = /^[A-Za-z0-9_.:/\-[\]]{1,128}$/

/** True if an author may use this as a key. */
export function isKey(key: unknown): key is string {
  return typeof key === 'string' && KEY.test(key) && key !== '__proto__'
}

export interface Call {
  readonly key: string
  readonly kind: CallKind
  /** The journal's entry when the call was made. */
  readonly entry: Entry | undefined
  readonly promise: CallPromise
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
  settled: boolean
  /** True while the function of a step runs. */
  running: boolean
  /** What it failed with, in this pass or an earlier one. While a step is retried: what its last attempt failed with. */
  failure: unknown
  /** Set on asks. */
  asking?: Asking
  /** Set in strict passes. */
  readonly site: CallSite | undefined
}

export interface Asking {
  readonly question: Question
  /** Digest of the question as its author wrote it. */
  readonly pin: string
  /** Turns an answer into what the caller gets: returns a value, or throws the error to reject with. */
  readonly give: (action: Action, value: unknown) => unknown
  /** Present if the question has a deadline. */
  readonly deadline?: { readonly dueAt: number; readonly expiredText: string } | undefined
}

export function newCall(key: string, kind: CallKind, entry?: Entry, strict = false): Call {
  let resolve: Call['resolve'] = unset
  let reject: Call['reject'] = unset
  const promise = new CallPromise((res, rej) => {
    resolve = res
    reject = rej
  })
  const site = strict ? new CallSite() : undefined
  return { key, kind, entry, promise, resolve, reject, settled: false, running: false, failure: undefined, site }
}

/**
 * The promise of an io call, which knows whether anything waits for it. It settles in the same microtasks as any other, so that a
 * handler sees the same order.
 */
class CallPromise extends Promise<unknown> {
  observed = false
}

const seen = (value: unknown): PropertyDescriptor => ({
  get(this: CallPromise): unknown {
    this.observed = true
    return value
  },
})
// `await`, `then` and Promise.all read `constructor`; `return` in an async function reads only `then`.
for (const name of ['constructor', 'then'] as const)
  void Object.defineProperty(CallPromise.prototype, name, seen(Promise.prototype[name]))

/** True if nothing waits for the call. */
export function isFloating({ promise }: Call): boolean {
  return !promise.observed
}

/** True if nothing waits for the call and it has failed, or one of its attempts has. */
export function isFloatingFailure(call: Call): boolean {
  return call.failure !== undefined && isFloating(call)
}

/** Keeps a rejection that the handler awaits later, or never, from ending the process. */
export function hush({ promise }: Call): void {
  const { observed } = promise
  void Promise.prototype.then.call(promise, undefined, () => {})
  promise.observed = observed
}

/** The keys of the calls that have not settled, as text for a message. */
export function unsettledKeys(calls: Iterable<Call>): string {
  const keys = [...calls].filter(({ settled }) => !settled).map(({ key }) => `"${key}"`)
  return keys.length > 5 ? `${keys.slice(0, 5).join(', ')} and ${keys.length - 5} more` : keys.join(', ')
}

/** The author's line that made the first call that has not settled, preferably one that nothing awaits. Known in strict passes only. */
export function lineOfUnsettled(calls: Iterable<Call>): string | undefined {
  const open = [...calls].filter(({ settled }) => !settled)
  return (open.find(isFloating) ?? open[0])?.site?.line
}

/** Something inside the scope ended the round: the scope, and those around it, are not open any more. */
export function endScopes(calls: Iterable<Call>, key: string): void {
  for (const call of calls)
    if (`${key}${SCOPE_SEPARATOR}`.startsWith(`${call.key}${SCOPE_SEPARATOR}`)) call.settled = true
}

/** A step that runs while a question is open. If the question is inside it, neither ever ends. */
export function maybeNested(calls: Iterable<Call>): { step: string; ask: string } | undefined {
  const all = [...calls]
  const step = all.find(({ running }) => running)
  const ask = all.find(({ kind, settled }) => kind === 'ask' && !settled)
  return step && ask && { step: step.key, ask: ask.key }
}

/** A promise that never settles and that nothing else refers to: the garbage collector takes it with its awaiter. */
export function parked(): Promise<never> {
  return new Promise<never>(() => {})
}

/** The value of an entry for the handler that made the call. Throws the error that the handler is to catch. */
export function valueOf({ key, asking }: Call, tag: Tag, payload: unknown): unknown {
  switch (tag) {
    case 'a': {
      const [, , action, value] = payload as AnswerPayload
      return asking?.give(action, value)
    }
    case 'ax': {
      const [otherwise] = payload as readonly unknown[]
      if (otherwise === undefined) throw new Expired(key)
      return otherwise
    }
    case 't':
      return undefined
    case 's':
    case 'c':
      return payload
    case 'sv':
    case 'cv':
      return undefined
    case 'se':
    case 'ce': {
      const failure = payload as { declined: string; action: 'decline' | 'cancel' } | { expired: string } | Failure
      if ('expired' in failure) throw new Expired(failure.expired)
      throw 'declined' in failure ? new Declined(failure.declined, failure.action) : new StepFailed(key, failure)
    }
  }
}

export function kindOf({ tag }: Entry): CallKind {
  if (tag === 't') return 'sleep'
  return tag.startsWith('a') ? 'ask' : tag.startsWith('s') ? 'step' : 'scope'
}

/** Runs code of the author, which may return, throw or return a promise, and reports how it went. */
export function attempt(run: () => unknown, returned: (value: unknown) => void, threw: (error: unknown) => void): void {
  let result: unknown
  try {
    result = run()
  } catch (error) {
    return threw(error)
  }
  if (isThenable(result)) result.then(returned, threw)
  else returned(result)
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

function unset(): void {}
