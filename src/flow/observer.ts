// Observers: what telemetry, timelines and logs learn about requests, flows, steps, questions, waits and tasks.
//
// 1. An app without observers does not enter this file: its parts check one variable that is undefined.
// 2. No observer sees a secret: flows and tasks are named by a digest.
// 3. An observer changes nothing. What it does wrong is logged.
// 4. Work runs exactly once, whatever `run` of an observer does, and only its own result counts.
import { callSafely } from '../protocol/call-safely.ts'
import type { RequestId } from '../protocol/messages.ts'
import type { ObserverLog } from '../protocol/observer-log.ts'
import { isThenable } from './call.ts'
import type { Caller } from './caller.ts'

/** Who keeps a flow between its rounds: the client, the store (a task), or the connection of an older client. */
export type FlowCarrier = 'client' | 'store' | 'connection'

/**
 * Watches an app: pass it to `rally({ observers })`. Each method is called when something begins, and returns a function that is called
 * when it ends. All are optional, and none may be async. For code around requests, use `app.use`.
 *
 * @example
 * const slowSteps: Observer = {
 *   step({ key, flow }) {
 *     const start = performance.now()
 *     return ({ outcome }) => console.log(`${flow.target} ${key}: ${outcome} in ${performance.now() - start} ms`)
 *   },
 * }
 */
export interface Observer {
  /** A request of a client, whatever its method, until it is answered. */
  round?(round: ObservedRound): Observation<RoundEnd>
  /** A pass: the handler of a flow runs from its top, until the flow ends or has to wait. */
  flow?(flow: ObservedFlow): Observation<FlowEnd>
  /** The function of a step runs. Never on a replay. Once for each attempt. */
  step?(step: ObservedStep): Observation<StepEnd>
  /** The handler reached a question that no earlier pass has the answer to. */
  ask?(ask: ObservedAsk): Observation<AskEnd>
  /** The flow waits. */
  wait?(wait: ObservedWait): Observation<WaitEnd>
  /** This worker runs a task that it has claimed, until it releases it. */
  task?(task: ObservedTask): Observation<TaskEnd>
  /**
   * A text that is sealed with a flow when it begins, 256 characters at most, such as a `traceparent`. Every later pass and task of
   * the flow gets it, on whichever instance, as `trace`.
   */
  trace?(): string | undefined
}

/**
 * What an observer returns: the function for the end, or an object with it. `run` makes an async context active for what was begun. It
 * must call `work` exactly once, and before it returns. What `run` returns does not count: the result is that of `work`.
 */
export type Observation<End> =
  | void
  | null
  | ((end: End) => void)
  | { end?(end: End): void; run?(work: () => unknown): unknown }

/** A request that an observer is told about. */
export interface ObservedRound {
  /** Such as `tools/call`. */
  readonly method: string
  /** The name of the tool or prompt, or the resource's URI, if there is such a one. */
  readonly target: string | undefined
  /** The id of the JSON-RPC request. */
  readonly id: RequestId
  /** As the client sent them. Do not change them. */
  readonly params: Readonly<Record<string, unknown>> | undefined
  /** The `_meta` of the request, as the client sent it. */
  readonly meta: Readonly<Record<string, unknown>> | undefined
  /** The revision of the protocol, such as `2026-07-28`. */
  readonly revision: string
  /** The caller. `undefined` if it was not authenticated. */
  readonly caller: Caller | undefined
  /** `tcp` over HTTP, `pipe` over standard streams, `undefined` in memory. */
  readonly transport: 'tcp' | 'pipe' | undefined
}

/** How a request was answered. */
export interface RoundEnd {
  /** `error` is a JSON-RPC error, and `tool_error` a tool's result with `isError`. */
  readonly outcome: 'complete' | 'tool_error' | 'input_required' | 'task' | 'cancelled' | 'error'
  /** The JSON-RPC error that the client gets. */
  readonly error?: { readonly code: number; readonly message: string }
}

/** A pass that an observer is told about, and the flow it belongs to. */
export interface ObservedFlow {
  /** Such as `tools/call`. */
  readonly method: string
  /** The name of the tool or prompt, or the resource's URI. */
  readonly target: string
  /** A digest that names the flow. */
  readonly flow: string
  /**
   * 0 in the first round. In a task and in an older session every pass that ends counts. A pass that was lost with its worker, and the
   * one that repeats it, may have the same number.
   */
  readonly round: number
  /** What keeps the journal between the rounds. */
  readonly carrier: FlowCarrier
  /** The caller. `undefined` if it was not authenticated. */
  readonly caller: Caller | undefined
  /** What `trace` returned when the flow began. `undefined` in that pass itself. */
  readonly trace: string | undefined
}

/** How a pass ended. */
export interface FlowEnd {
  /** `done` and `failed` end the flow. After the others another pass continues it. */
  readonly outcome: 'done' | 'failed' | 'cancelled' | 'asks' | 'waiting' | 'deferred' | 'detached'
  /** What the handler threw. It may contain secrets of other systems. */
  readonly error?: unknown
}

/** One attempt of a step that an observer is told about. */
export interface ObservedStep {
  /** The key of the step, with those of its scopes. */
  readonly key: string
  /** 1 for the first attempt. */
  readonly attempt: number
  /** The pass that runs the step. */
  readonly flow: ObservedFlow
}

/** How an attempt of a step ended. */
export interface StepEnd {
  /** Whether the step returned or threw. */
  readonly outcome: 'completed' | 'failed'
  /** What the step threw. */
  readonly error?: unknown
}

/** A question that an observer is told about. */
export interface ObservedAsk {
  /** The key of the question, with those of its scopes. */
  readonly key: string
  /** The capability that the question needs first, such as `elicitation.form`. Empty for an answer to a round by hand. */
  readonly kind: string
  /** The pass that asks. */
  readonly flow: ObservedFlow
}

/** How a question ended in this pass. */
export interface AskEnd {
  /** `open`: the pass ended without an answer. A later pass asks again or has the answer. */
  readonly outcome: 'accept' | 'decline' | 'cancel' | 'open'
}

/** What a flow waits for. */
export interface ObservedWait {
  /** For the answers of the client, for a time, or for an event from outside. */
  readonly for: 'answers' | 'time' | 'event'
  /** What waits. */
  readonly keys: readonly string[]
  /** Milliseconds since 1970, if it waits for a time. */
  readonly dueAt: number | undefined
  /** The pass that waits. */
  readonly flow: ObservedFlow
}

/** How a wait ended on this instance. */
export interface WaitEnd {
  /**
   * `over`: its time has come, or what waited for it has ended otherwise, as a question whose answer came. `released`: nothing waits here
   * any more. The flow continues in another pass, perhaps elsewhere.
   */
  readonly outcome: 'over' | 'released'
}

/** A task that this worker runs. */
export interface ObservedTask {
  /** The name of the tool. */
  readonly tool: string
  /** A digest that names the task. */
  readonly task: string
  /** A digest that names the flow. */
  readonly flow: string
  /** True if another worker was lost while it ran the task. */
  readonly lost: boolean
  /** The caller of the request that made the task. `undefined` if it was not authenticated. */
  readonly caller: Caller | undefined
  /** What `trace` returned when the flow began. */
  readonly trace: string | undefined
}

/** How this worker released a task. */
export interface TaskEnd {
  /** `released`: it waits, or another worker continues it. `lost`: another worker has it, or it was cancelled. */
  readonly outcome: 'completed' | 'failed' | 'released' | 'lost'
}

const MAX_TRACE = 256

/** Something that was begun, with all that observers want of it. */
export interface Begun<End> {
  run<T>(work: () => T): T
  end(end: End): void
}

const UNOBSERVED: Begun<unknown> = { run: (work) => work(), end: () => {} }

/** Tells all observers, by their method of this name, that something begins. */
type Begin = <End>(name: keyof Observer, begin: (observer: Observer) => Observation<End>) => Begun<End>

/** What one observer returned. */
interface ObserverBegun<End> {
  /** Names the method of the observer in the log. */
  readonly where: string
  readonly observation: Exclude<Observation<End>, void | null>
}

/** The observers of an app, safe to call. */
export class Observers {
  readonly #all: readonly Observer[]
  readonly #log: ObserverLog

  constructor(observers: readonly Observer[], log: ObserverLog) {
    this.#all = observers
    this.#log = log
  }

  /** These observers, and one more. */
  with(observer: Observer): Observers {
    return new Observers([...this.#all, observer], this.#log)
  }

  round(round: ObservedRound): Begun<RoundEnd> {
    return this.#begin('round', (observer) => observer.round?.(round))
  }

  task(task: ObservedTask): Begun<TaskEnd> {
    return this.#begin('task', (observer) => observer.task?.(task))
  }

  flow(flow: ObservedFlow): FlowObserver {
    return new FlowObserver(flow, (name, begin) => this.#begin(name, begin))
  }

  /** Puts into the state of a flow what is to be sealed with it, unless it has that already. */
  sealTrace(flowState: { trace?: string }): void {
    if (flowState.trace !== undefined) return
    for (const [index, observer] of this.#all.entries()) {
      const trace = this.#log.begin(`observers[${index}].trace`, () => observer.trace?.())
      if (typeof trace !== 'string' || trace.length > MAX_TRACE) continue
      flowState.trace = trace
      return
    }
  }

  #begin<End>(name: keyof Observer, begin: (observer: Observer) => Observation<End>): Begun<End> {
    const begun: ObserverBegun<End>[] = []
    for (const [index, observer] of this.#all.entries()) {
      const where = `observers[${index}].${name}`
      const observation = this.#log.begin(where, () => begin(observer))
      if (observation !== undefined) begun.push({ where, observation })
    }
    if (begun.length === 0) return UNOBSERVED
    let isOver = false
    return {
      run: (work) => runInAll(begun, 0, work, this.#log),
      end: (end) => {
        if (isOver) return
        isOver = true
        for (const { observation } of begun.toReversed()) {
          this.#log.safely(() => (typeof observation === 'function' ? observation(end) : observation.end?.(end)))
        }
      },
    }
  }
}

/** A pass that is observed, and what happens inside it. */
export class FlowObserver {
  readonly flow: ObservedFlow
  readonly pass: Begun<FlowEnd>
  readonly #begin: Begin
  readonly #asks = new Map<string, Begun<AskEnd>>()
  /** The keys of the answers to a round by hand that were told. */
  readonly #byHand = new Set<string>()

  constructor(flow: ObservedFlow, begin: Begin) {
    this.flow = flow
    this.#begin = begin
    this.pass = begin('flow', (observer) => observer.flow?.(flow))
  }

  step(key: string, attempt: number): Begun<StepEnd> {
    return this.#begin('step', (observer) => observer.step?.({ key, attempt, flow: this.flow }))
  }

  ask(key: string, kind: string): void {
    this.#asks.set(
      key,
      this.#begin('ask', (observer) => observer.ask?.({ key, kind, flow: this.flow })),
    )
  }

  answered(key: string, outcome: AskEnd['outcome']): void {
    this.#asks.get(key)?.end({ outcome })
    this.#asks.delete(key)
  }

  /** The client has answered a question of a round by hand. It is told once. */
  answeredByHand(key: string, outcome: AskEnd['outcome']): void {
    if (this.#byHand.has(key)) return
    this.#byHand.add(key)
    this.ask(key, '')
    this.answered(key, outcome)
  }

  wait(wait: Omit<ObservedWait, 'flow'>): Begun<WaitEnd> {
    return this.#begin('wait', (observer) => observer.wait?.({ ...wait, flow: this.flow }))
  }

  /** The pass has ended, and its questions stay open. */
  leaveOpen(): void {
    for (const key of this.#asks.keys()) this.answered(key, 'open')
  }
}

/** Runs the work inside `run` of each observer from this index on, the first one outermost. */
function runInAll<T>(begun: readonly ObserverBegun<never>[], index: number, work: () => T, log: ObserverLog): T {
  const each = begun[index]
  if (each === undefined) return work()
  const { where, observation } = each
  const runRest = (): T => runInAll(begun, index + 1, work, log)
  if (typeof observation === 'function' || observation.run === undefined) return runRest()
  const errors = new Set<unknown>()
  let result: (() => T) | undefined
  // The observer must be the first to call this, and calls it once.
  const runOnce = (isFirst: boolean): T => {
    if (isFirst !== (result === undefined)) {
      log.mistake(
        `${where}: run(work) must call work() exactly once, before it returns. Rally ran the work once anyway.`,
      )
    }
    return (result ??= resultOf(runRest, errors))()
  }
  callSafely(
    () => observation.run?.(() => runOnce(true)),
    (error) => {
      if (!errors.has(error)) log.failed(error)
    },
  )
  return runOnce(false)
}

/** Runs the work. Adds what it throws to `errors`: if an observer passes such an error on, the observer has not failed. */
function resultOf<T>(work: () => T, errors: Set<unknown>): () => T {
  try {
    const value = work()
    if (!isThenable(value)) return () => value
    // A thenable may begin anew for each call of its `then`. A promise does not.
    const promise = Promise.resolve(value)
    promise.catch((error: unknown) => errors.add(error))
    return () => promise as T
  } catch (error) {
    errors.add(error)
    return () => {
      throw error
    }
  }
}
