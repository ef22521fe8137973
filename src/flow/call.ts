// An io call of a pass: a key, and a promise that is settled in its turn or never.
import type { Action } from './journal.ts'
import type { Question } from './question.ts'

export type CallKind = 'ask' | 'step' | 'scope'

const KEY = /^[A-Za-z0-9_.:/\-[\]]{1,128}$/

/** Whether an author may give this as a key. */
export function isKey(key: unknown): key is string {
  return typeof key === 'string' && KEY.test(key) && key !== '__proto__'
}

export interface Call {
  readonly key: string
  readonly kind: CallKind
  readonly promise: Promise<unknown>
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
  settled: boolean
  /** Set on asks. */
  asking?: Asking
}

export interface Asking {
  readonly question: Question
  /** The digest of the question as its author wrote it. */
  readonly pin: string
  /** What an answer means to the caller: a value, or an error to throw. */
  readonly give: (action: Action, value: unknown) => unknown
}

export function newCall(key: string, kind: CallKind): Call {
  let resolve: Call['resolve'] = unset
  let reject: Call['reject'] = unset
  const promise = new Promise<unknown>((res, rej) => {
    resolve = res
    reject = rej
  })
  return { key, kind, promise, resolve, reject, settled: false }
}

/** A promise nobody settles and nobody else holds: whoever awaits it is collected with it. */
export function parked(): Promise<never> {
  return new Promise<never>(() => {})
}

function unset(): void {}
