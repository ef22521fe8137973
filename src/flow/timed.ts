// The calls of a pass that end by time: sleeps, and questions with a deadline.
//
// A due time is set when its call is first reached. What is due settles in the order of time, among the answers (rule 14).
import { toJsonText } from '../protocol/json.ts'
import type { Asking, Call } from './call.ts'
import type { PassInput } from './carrier.ts'
import { withDueAt } from './flow-state.ts'
import type { Entry } from './journal.ts'
import type { Settlement } from './settling.ts'
import type { Waits } from './waits.ts'

/** How long a question stays open. */
export interface Deadline {
  readonly withinMs: number
  /** What the caller gets then. Default: `Expired` is thrown. */
  readonly otherwise?: unknown
}

/** What a timed call needs from its pass. */
export interface TimedHost {
  readonly input: PassInput
  readonly waits: Waits
  find(key: string): Call | undefined
  /** Settles a call in its turn by time. */
  settleAt(settlement: Settlement & { readonly at: number }): void
  /** Closes a question. Returns false if it is not open: its answer came in time and is being validated. */
  withdraw(key: string): boolean
}

/** Ends a sleep when it is due. */
export function wakeAt(host: TimedHost, call: Call, dueAt: number): void {
  const fire = (): void => host.settleAt({ call, tag: 't', payloadText: 'null', at: dueAt })
  host.waits.add(call.key, { dueAt, holds: false, recorded: true, fire })
}

/** Set once, when the question is first reached. */
export function deadlineOf(waits: Waits, key: string, { withinMs, otherwise }: Deadline): Asking['deadline'] {
  const dueAt = waits.dueAt(key, withinMs, 'ask', `The deadline of the question "${key}"`)
  const expiredText = otherwise === undefined ? '[]' : toJsonText([otherwise], `\`otherwise\` of "${key}"`)
  return { dueAt, expiredText }
}

/** Settles the call at once if the deadline of its question has passed, and returns true. Otherwise sees to it that it will. */
export function expires(host: TimedHost, call: Call, { deadline }: Asking): boolean {
  if (deadline === undefined) return false
  const { dueAt, expiredText } = deadline
  const isOver = host.waits.isOver(dueAt)
  const expire = (): void => host.settleAt({ call, tag: 'ax', payloadText: expiredText, at: dueAt })
  const fire = (): void => void (host.withdraw(call.key) && expire())
  if (isOver) expire()
  else host.waits.add(call.key, { dueAt, holds: false, recorded: true, fire })
  return isOver
}

/** The call had settled because it was due, and its entry was removed. It settles again. */
export function dueAgain(host: TimedHost, { key, at, payload }: Entry): void {
  const dueAt = host.input.flow.startedAt + at
  host.waits.carry(key, withDueAt(dueAt, host.waits.carried(key)))
  const call = host.find(key)
  if (call?.kind === 'sleep') wakeAt(host, call, dueAt)
  else if (call !== undefined) host.settleAt({ call, tag: 'ax', payloadText: JSON.stringify(payload), at: dueAt })
}
