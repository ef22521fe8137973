// The contract between a pass and its carrier: what the carrier brings to a pass, and what it takes from the outcome.
//
// The client (sealed state), a store (a task) and a live connection (an older client) are the three carriers.
import type { Cancel } from '../protocol/cancel.ts'
import type { Logger } from '../protocol/logger.ts'
import type { StoreOutages } from '../store/outages.ts'
import type { Answers } from './answering.ts'
import type { RetryOptions } from './retry.ts'
import type { CallKind } from './call.ts'
import type { CallSource } from './caller.ts'
import type { EventSource, ReceivedEvent } from './event-source.ts'
import type { OnError, TargetName } from './failure-log.ts'
import type { FlowState, ShownQuestion, Wait } from './flow-state.ts'
import type { Journal } from './journal.ts'
import type { Begun, FlowCarrier, FlowObserver, Observers, WaitEnd } from './observer.ts'
import type { Capability, Form } from './question.ts'
import type { Scheduler } from './scheduler.ts'
import type { Interruptible, Underway } from './underway.ts'

/**
 * Keeps the journal of a flow between two passes: brings it to a pass, and takes what the pass produced. `T` is what the
 * carrier makes of an outcome.
 */
export interface Carrier<T> {
  readonly host: PassHost
  /** Default: those of the host. */
  readonly observers?: Observers | undefined
  readonly kind: FlowCarrier
  readonly flow: Flow
  readonly journal: Journal
  readonly flowState: FlowState
  readonly answers: Answers | undefined
  /** See `PassInput.receivedAt`. */
  readonly receivedAt?: ((key: string) => number | undefined) | undefined
  /** Where the request came from that is being served. */
  readonly source: CallSource
  /** Largest journal that it can keep, in bytes. */
  readonly maxJournalBytes: number
  /** Longest pass of a handler that declares no limit, in milliseconds. */
  readonly timeoutMs: number
  /** See `PassInput.waiting`. */
  readonly waiting?: WaitLimits | undefined
  readonly underway: Underway<Interruptible>
  readonly cancel: Cancel | undefined
  readonly progress?: Progress | undefined
  readonly log?: Log | undefined
  readonly journalWriter?: JournalWriter | undefined
  /** See `PassInput.events`. */
  readonly events?: EventSource | undefined
  readonly mayDetach?: boolean | undefined
  readonly hasStore?: boolean | undefined
  /** See `PassInput.can`. */
  can(capability: Capability): boolean
  /** See `PassInput.wantsHandover`. */
  wantsHandover(): boolean
  /** Called before the handler runs, with the pass to offer late answers to. */
  started?(pass: RunningPass): void
  suspended(outcome: Suspension): T | Promise<T>
  /** Called if an observer watches and the carrier waits for answers in memory: the carrier ends this wait. */
  holdWait?(wait: Begun<WaitEnd>): void
  /** `endText` of flow/run.ts makes a text of the outcome. */
  ended(outcome: Ending): T | Promise<T>
  cancelled(): T
}

/** A pass as its carrier sees it while it runs. */
export interface RunningPass {
  readonly input: PassInput
  readonly ended: boolean
  /** Gives the pass answers and events that arrived after it started. */
  offer(answers: Answers, events: readonly (readonly [key: string, event: ReceivedEvent])[]): void
  /** Ends the pass with this error. */
  fail(error: unknown): unknown
}

/** What a pass uses of the app it runs in. */
export interface PassHost {
  readonly logger: Logger
  readonly onError: OnError | undefined
  /** True if callers may read the message of any error. */
  readonly showErrors: boolean
  /** Guards the store of a step that runs once. */
  readonly outages: StoreOutages
  readonly strict: boolean
  /** Present if the app has observers. */
  readonly observers: Observers | undefined
  /** How steps are retried that do not say it themselves. */
  readonly steps?: RetryOptions | undefined
  readonly now: () => number
}

/** Everything one pass runs with. */
export interface PassInput {
  /** What runs, for logs and messages. */
  readonly target: PassTarget
  readonly flow: Flow
  readonly journal: Journal
  /** Comes with the journal. The pass takes from it; the outcome's flow state replaces it. */
  readonly flowState: FlowState
  /** The client's answers, each a JSON object; `undefined` if the client sent none. */
  readonly answers: Answers | undefined
  /** When the answer to a question was received, in milliseconds since 1970. Default: when the pass began. */
  readonly receivedAt?: ((key: string) => number | undefined) | undefined
  /** Where the request came from. Absent only in tests. */
  readonly source?: CallSource | undefined
  /** Schemas declared with the handler, by key. */
  readonly forms: ReadonlyMap<string, Form>
  /** What the current request declared: whether a question may be sent now. */
  readonly can: (capability: Capability) => boolean
  readonly limits: PassLimits
  /** How long the carrier lets a flow wait. Default: every wait stays in the pass. */
  readonly waiting?: WaitLimits | undefined
  /** How steps are retried that do not say it themselves. Default: they are not. */
  readonly steps?: RetryOptions | undefined
  readonly logger: Logger
  readonly onError?: OnError | undefined
  /** Default: a failure of the store is a failure of the step. */
  readonly outages?: StoreOutages | undefined
  /** Sends progress on the request's own stream. Absent if the client did not ask for progress. */
  readonly progress?: Progress | undefined
  /** Sends a log message on the request's own stream. Absent if the client did not ask for logs. */
  readonly log?: Log | undefined
  /** True if this instance wants another one to continue the flow: it drains or is overloaded. */
  readonly wantsHandover?: (() => boolean) | undefined
  /** Persists the journal while the pass runs. Present only if the flow is a task. */
  readonly journalWriter?: JournalWriter | undefined
  /** Takes events from outside. Present only if the flow is a task. */
  readonly events?: EventSource | undefined
  /** True if the flow may become a task in this pass. */
  readonly mayDetach?: boolean | undefined
  /** False if the app has no store, so that no flow can become a task. */
  readonly hasStore?: boolean | undefined
  /** Lists the pass while it runs, so that it can be interrupted or timed out. */
  readonly underway?: Underway<Interruptible> | undefined
  readonly cancel?: Cancel | undefined
  /** Detects io calls inside steps immediately, but makes every await slower. For tests and development. */
  readonly strict?: boolean | undefined
  readonly scheduler?: Scheduler | undefined
  readonly now?: (() => number) | undefined
  readonly trace?: ((event: TraceEvent) => void) | undefined
  /** Present if the pass is observed. */
  readonly observed?: FlowObserver | undefined
}

/** `task` is 'never' if it cannot become a task. */
export type PassTarget = TargetName & { readonly task?: string | undefined }

export interface Flow {
  /** Secret: idempotency keys and derived values are computed from it. */
  readonly id: string
  readonly startedAt: number
  /** 0 in the first round. */
  readonly round: number
  /** If the store carries the flow. A secret of the caller: logs have a digest of it. */
  readonly taskId?: string
  readonly revision: string
  /** What the client declared in the first round: the same in every pass. */
  declared(capability: Capability): boolean
}

export interface PassLimits {
  /** Largest journal text, in bytes. */
  readonly journalBytes: number
  /** Longest pass, in milliseconds. */
  readonly passMs: number
}

/** How a carrier waits. */
export interface WaitLimits {
  /**
   * A wait of at least so long ends the pass, and the carrier runs the next one when it is due. So does a shorter one that would end in
   * the second half of the pass's time. `Infinity`: no wait does.
   */
  readonly releaseFromMs: number
  /** The longest sleep, in milliseconds. Default: the time limit of the pass. */
  readonly sleepMs?: number
  /** The longest deadline of a question, in milliseconds. */
  readonly askMs: number
  /** When the carrier gives the flow up, in milliseconds since 1970. No sleep ends later. Default: never. */
  readonly endsAt?: number
  /** What to do about a longer wait. Default: to become a task, if the call can. */
  readonly advice?: string
}

export type Progress = (progress: number, total?: number, message?: string) => void
export type Log = (level: string, data: unknown, logger?: string) => void

/** A carrier that persists the journal while the pass runs, not only when the pass ends. */
export interface JournalWriter {
  /**
   * Persists what was added to the journal, and `waits` with it, if they are given. The handler sees a result only after this
   * resolves; a rejection fails the pass.
   */
  persist(journal: Journal, waits?: ReadonlyMap<string, Wait>): Promise<void>
  /** Until when all answers and events are known, in milliseconds since 1970. Default: always. */
  readonly knownAt?: number
  /** Offers the pass what came until now. A rejection fails the pass. */
  refresh?(): Promise<void>
  /** Shows the questions that are open now, by key, while steps still run, and persists the due times of the flow. */
  show(questions: ReadonlyMap<string, ShownQuestion>, waits: ReadonlyMap<string, Wait> | undefined): void
}

/** How a pass ended. */
export type Outcome = Suspension | Ending | { kind: 'cancelled' }

interface Waiting {
  readonly dueAt?: number
  /** The keys of the events that the handler awaits. Default: none. */
  readonly events?: readonly string[]
  readonly journal: Journal
  readonly flowState: FlowState
}

/** The flow continues in a later pass. */
export type Suspension =
  /** `questions` holds the wire text of each open question, by key. With `dueAt`, run the next pass then, answered or not. */
  | ({ kind: 'asks'; questions: Map<string, string> } & Waiting)
  /** Nothing to ask: run the next pass elsewhere or later. */
  | { kind: 'deferred'; journal: Journal; flowState: FlowState }
  /** Nothing to ask: run the next pass at `dueAt`, in milliseconds since 1970, or when an event has come. */
  | ({ kind: 'waiting' } & Waiting)
  /** Continue as a task. The client has not seen every question that is open in the flow state. */
  | { kind: 'detached'; journal: Journal; flowState: FlowState }

/** The flow is over. */
export type Ending =
  | { kind: 'done'; value: unknown }
  | {
      kind: 'failed'
      error: unknown
      /** The key of the io call that failed, if it was one. */
      key?: string | undefined
    }

export type TraceEvent =
  | { type: 'call'; key: string; kind: CallKind }
  | { type: 'settle'; key: string; value?: unknown; error?: unknown; replayed: boolean }
