// What a pass is given: the flow it belongs to, what came of the rounds before, and what it may use of its instance.
import type { Logger } from '../protocol/logger.ts'
import type { Answers } from './answering.ts'
import type { CallKind } from './call.ts'
import type { Cancel } from '../protocol/cancel.ts'
import type { FlowState } from './carry.ts'
import type { Journal } from './journal.ts'
import type { JournalWriter } from './keeper.ts'
import type { Capability, Form } from './question.ts'
import type { Scheduler } from './scheduler.ts'
import type { Interruptible, Underway } from './underway.ts'

export interface PassInput {
  readonly flow: Flow
  readonly journal: Journal
  /** What came with the journal. The pass takes from it, and the outcome's carry replaces it. */
  readonly carry: FlowState
  /** The client's answers, each a JSON object; `undefined` when it sent none. */
  readonly answers: Answers | undefined
  /** Schemas declared with the handler, by key. */
  readonly forms: ReadonlyMap<string, Form>
  /** What the current request declared: whether a question may be sent now. */
  readonly can: (capability: Capability) => boolean
  readonly limits: PassLimits
  readonly logger: Logger
  /** Notifications on the request's own stream; absent when the client asked for none. */
  readonly progress?: Progress | undefined
  readonly log?: Log | undefined
  /** Whether the instance would rather hand this flow over now. */
  readonly wantsHandover?: (() => boolean) | undefined
  /** Keeps the journal while the pass runs: the flow is a task. */
  readonly keeper?: JournalWriter | undefined
  /** Whether the flow may go on as a task from here. */
  readonly mayDetach?: boolean | undefined
  /** Where the pass is found while it runs, by whoever may have to interrupt it. */
  readonly underway?: Underway<Interruptible> | undefined
  readonly cancel?: Cancel | undefined
  /** Finds io calls inside steps at once, at the price of slower awaits. For tests and development. */
  readonly strict?: boolean | undefined
  readonly scheduler?: Scheduler | undefined
  readonly now?: (() => number) | undefined
  readonly trace?: ((event: TraceEvent) => void) | undefined
}

export interface Flow {
  /** Secret: idempotency keys and derived values come from it. */
  readonly id: string
  readonly startedAt: number
  /** 0 in the first round. */
  readonly round: number
  readonly revision: string
  /** What the client declared in the first round: the same on every pass. */
  readonly declared: (capability: Capability) => boolean
}

export interface PassLimits {
  /** Largest journal text, in bytes. */
  readonly journalBytes: number
  /** Longest pass, in milliseconds. */
  readonly passMs: number
}

export type Progress = (progress: number, total?: number, message?: string) => void
export type Log = (level: string, data: unknown, logger?: string) => void

export type TraceEvent =
  | { type: 'call'; key: string; kind: CallKind }
  | { type: 'settle'; key: string; value?: unknown; error?: unknown; replayed: boolean }
