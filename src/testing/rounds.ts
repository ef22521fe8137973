// A flow under test and its carrier: only text survives from one pass to the next.
import { randomUUID } from 'node:crypto'
import type { Attempt, RetryPolicy } from '../flow/retry.ts'
import { emptyState, readFlowState, writeFlowState } from '../flow/flow-state.ts'
import type { Answers } from '../flow/answering.ts'
import type { InputRequired } from '../flow/by-hand.ts'
import { asInputRequired } from '../flow/by-hand.ts'
import type { Asking } from '../flow/call.ts'
import type { EventSource } from '../flow/event-source.ts'
import type { Asks, Io } from '../flow/io.ts'
import { Journal } from '../flow/journal.ts'
import type { Outcome, PassInput, TraceEvent } from '../flow/carrier.ts'
import type { HandlerEnds } from '../flow/phase.ts'
import type { Deadline } from '../flow/timed.ts'
import { Pass } from '../flow/pass.ts'
import type { Capability, Form, Question } from '../flow/question.ts'
import { prepareForm } from '../flow/question.ts'
import { startPass } from '../flow/io.ts'
import { scheduler } from '../flow/scheduler.ts'
import type { Settlement } from '../flow/settling.ts'
import { STARTED_AT, VirtualClock } from './clock.ts'
import type { Logger } from '../protocol/logger.ts'
import { REVISION } from '../protocol/revisions/2026-07-28.ts'
import type { OnceStore } from '../store/once.ts'
import { StoreOutages } from '../store/outages.ts'

export type Run = (io: Io<Asks>) => unknown

/** Answers by key, as a client writes them. */
export type Sent = Readonly<Record<string, object>>

/** Whether the flow is a task from its start, may become one at `io.detach()`, or never is. */
export type TaskKind = 'never' | 'always' | 'detach'

export interface RoundsOptions {
  /** Schemas declared with the handler. Default: none. */
  readonly asks?: Asks | undefined
  /** The same, prepared. Default: those of `asks`. */
  readonly forms?: ReadonlyMap<string, Form> | undefined
  /** What every pass gets beside the defaults of a test. Default: nothing. */
  readonly input?: Partial<PassInput> | undefined
  /** Default 'never'. */
  readonly task?: TaskKind | undefined
  /** What every pass of a task gets beside them. Default: nothing. */
  readonly taskInput?: Partial<PassInput> | undefined
  /** The capabilities that the client declares. Default: all. */
  readonly capabilities?: readonly Capability[] | undefined
  /** What comes for an event, when the handler waits for it. Default: nothing. */
  readonly eventFor?: ((key: string) => unknown) | undefined
  /** Called when what came for an event does not match its schema. Default: nothing. */
  readonly eventRefused?: ((key: string) => void) | undefined
  /** True if a `once` step runs whatever the store has of other flows. Default false: other `Rounds` are other instances of the fleet. */
  readonly hasOwnRecords?: boolean | undefined
  /** True if waits count for the time limit of a plain call's pass, by the flow's clock. Default false: only real time does. */
  readonly waitsCount?: boolean | undefined
  /** Is told what the handler does. Default: none. */
  readonly observer?: Partial<Observer> | undefined
}

export interface Observer {
  /** A question is asked. Returns the question to ask instead. */
  asked(key: string, question: Question): Question
  /** A step's function is about to run. */
  ran(key: string): void
  /** Something was recorded. */
  settled(): void
  /** The handler returned `inputRequired`. */
  tookByHand(required: InputRequired): void
}

/** Keeps the records of `once` steps to this flow: all flows under test have one id, and the author's store may outlive them. */
class OwnRecords extends StoreOutages {
  readonly #flow = randomUUID()

  override once(store: OnceStore): OnceStore {
    const guarded = super.once(store)
    const own = (key: string): string => `${key} ${this.#flow}`
    return {
      claim: (key, note, leaseMs) => guarded.claim(own(key), note, leaseMs),
      renew: (key, fence, leaseMs) => guarded.renew(own(key), fence, leaseMs),
      settle: (key, fence, record, keepMs) => guarded.settle(own(key), fence, record, keepMs),
      release: (key, fence) => guarded.release(own(key), fence),
    }
  }
}

const PASS_MS = 10_000
/** As in a real task, a wait of a second or more ends the pass. */
export const TASK_WAITS = { releaseFromMs: 1_000, sleepMs: Infinity, askMs: Infinity, advice: '' }
const JOURNAL_BYTES = 65_536

export class Rounds {
  /** The trace of each pass. */
  readonly passes: TraceEvent[][] = []
  /** The keys of the steps, in the order in which they ran. */
  readonly effects: string[] = []
  /** The warnings and errors that the engine logged. */
  readonly warnings: string[] = []
  /** The questions of the last pass. */
  readonly questions = new Map<string, Question>()
  /** True if the last pass took its round by hand. */
  byHand = false
  readonly #options: RoundsOptions
  readonly #forms: ReadonlyMap<string, Form>
  readonly #can: (capability: Capability) => boolean
  #state: string | undefined
  #round = 0
  #journal = Journal.empty()
  #running: Pass | undefined
  /** When the time limit of the pass has passed, by the clock of the flow. */
  #passEndsAt = Infinity
  /** When the flow became a task, by its own clock. `undefined` in a plain call. */
  #taskSince: number | undefined
  readonly #clock = new VirtualClock()
  readonly #logger: Logger = {
    warn: (message) => void this.warnings.push(message),
    error: (message) => void this.warnings.push(message),
  }
  readonly #outages: StoreOutages | undefined

  constructor(options: RoundsOptions = {}) {
    this.#options = options
    const { asks = {}, capabilities } = options
    this.#forms =
      options.forms ?? new Map(Object.entries(asks).map(([key, schema]) => [key, prepareForm(schema, `asks.${key}`)]))
    if (options.task === 'always') this.#taskSince = STARTED_AT
    this.#outages = options.hasOwnRecords === true ? new OwnRecords(this.#logger) : undefined
    this.#can = (capability) => capabilities === undefined || capabilities.includes(capability)
  }

  /** True if the store carries the flow. */
  get isTask(): boolean {
    return this.#taskSince !== undefined
  }

  /** The journal's text after the last pass, even if the flow has ended. */
  get journal(): string {
    return this.#journal.text()
  }

  /** Lets time pass until then, in milliseconds since 1970. */
  advanceTo(time: number): void {
    this.#clock.advanceTo(time)
  }

  /** The time of the flow's clock. */
  get now(): number {
    return this.#clock.now()
  }

  /** Runs one round. If it fails, the state does not change: the next call retries the round. */
  async next(run: Run, sent?: Sent, input: Partial<PassInput> = {}): Promise<Outcome> {
    const { journal, flowState } = this.#open()
    this.#journal = journal
    const answers = sent && (JSON.parse(JSON.stringify(sent)) as Answers)
    const trace: TraceEvent[] = []
    this.passes.push(trace)
    this.questions.clear()
    this.byHand = false
    const carried = { ...this.#options.input, ...this.#carrier() }
    const passInput = { ...this.#input(trace), ...carried, journal, flowState, answers, ...input }
    const isLimited = this.#options.waitsCount === true && !this.isTask && passInput.waiting !== undefined
    this.#passEndsAt = isLimited ? this.now + passInput.limits.passMs : Infinity
    const outcome = await this.#pass(run, passInput)
    if (outcome.kind === 'detached') this.#taskSince = this.now
    if (outcome.kind !== 'done' && outcome.kind !== 'failed' && outcome.kind !== 'cancelled') {
      this.#state = JSON.stringify([outcome.journal.text(), writeFlowState(outcome.flowState)])
      this.#round += 1
    }
    return outcome
  }

  #carrier(): Partial<PassInput> {
    if (this.#taskSince === undefined) return { mayDetach: this.#options.task === 'detach' }
    const { taskInput } = this.#options
    const waiting = taskInput?.waiting ?? TASK_WAITS
    return {
      journalWriter: { persist: () => Promise.resolve(), show: () => {} },
      events: this.#events,
      ...taskInput,
      // The longest sleep of a new task is its whole life.
      waiting: { ...waiting, endsAt: this.#taskSince + (waiting.sleepMs ?? Infinity) },
    }
  }

  get #events(): EventSource {
    return {
      mint: (key) => `token-of-${key}`,
      urlOf: (token) => `https://events.example/events/${token}`,
      take: (key) => {
        const value = this.#options.eventFor?.(key)
        return value === undefined ? undefined : { value: JSON.parse(JSON.stringify(value)) as unknown, at: this.now }
      },
      refuse: (key) => this.#options.eventRefused?.(key),
    }
  }

  #open(): Pick<PassInput, 'journal' | 'flowState'> {
    if (this.#state === undefined) return { journal: Journal.empty(), flowState: emptyState() }
    const [journal, flowState] = JSON.parse(this.#state) as [string, unknown]
    return { journal: Journal.read(journal), flowState: readFlowState(flowState) }
  }

  #pass(run: Run, input: PassInput): Promise<Outcome> {
    const observer: Observer = {
      asked: (key, question) => {
        this.questions.set(key, question)
        return this.#options.observer?.asked?.(key, question) ?? question
      },
      ran: (key) => {
        this.effects.push(key)
        this.#options.observer?.ran?.(key)
      },
      settled: () => this.#clock.settled(),
      tookByHand: (required) => {
        this.byHand = true
        for (const [key, question] of required.questions) this.questions.set(key, question)
        this.#options.observer?.tookByHand?.(required)
      },
    }
    return new Promise((finish) => {
      this.#running = new ObservedPass(input, finish, observer, () => this.#passEndsAt - this.now)
      startPass(this.#running, run)
    })
  }

  /** Something is due. */
  #fire(run: () => void): void {
    if (this.now > this.#passEndsAt && this.#running?.ended === false) this.#running.expire()
    else run()
  }

  get #activity(): 'busy' | 'ending' | 'idle' {
    if (this.#running?.isBusy) return 'busy'
    return this.#running?.canEnd() ? 'ending' : 'idle'
  }

  #input(trace: TraceEvent[]): Omit<PassInput, 'journal' | 'flowState' | 'answers'> {
    return {
      target: { method: 'tools/call', target: 'handler' },
      flow: {
        id: 'a-flow-under-test',
        startedAt: STARTED_AT,
        round: this.#round,
        revision: REVISION,
        declared: this.#can,
      },
      forms: this.#forms,
      can: this.#can,
      limits: { journalBytes: JOURNAL_BYTES, passMs: PASS_MS },
      logger: this.#logger,
      outages: this.#outages,
      strict: true,
      // A test does not wait: every sleep is one turn, and what is due later comes when nothing runs.
      scheduler: {
        ...scheduler,
        sleep: () => new Promise((resolve) => void setImmediate(resolve)),
        after: (ms, run) =>
          this.#clock.after(
            ms,
            () => this.#fire(run),
            () => this.#activity,
          ),
      },
      now: this.#clock.now,
      trace: (event) => void trace.push(snapshot(event)),
    }
  }
}

class ObservedPass extends Pass {
  readonly #observer: Observer
  readonly #leftMs: () => number

  constructor(input: PassInput, finish: (outcome: Outcome) => void, observer: Observer, leftMs: () => number) {
    super(input, finish)
    this.#observer = observer
    this.#leftMs = leftMs
  }

  override get leftMs(): number {
    return Math.min(super.leftMs, this.#leftMs())
  }

  override start(run: () => unknown, { conclude, isResult }: HandlerEnds): void {
    super.start(run, {
      isResult,
      conclude: (value, pass) => {
        const required = asInputRequired(value)
        if (required !== undefined) this.#observer.tookByHand(required)
        return conclude(required ?? value, pass)
      },
    })
  }

  override ask<T>(key: string, toQuestion: () => Question, give: Asking['give'], within?: Deadline): Promise<T> {
    const observed = (): Question => {
      const question = toQuestion()
      return question.isEvent ? question : this.#observer.asked(key, question)
    }
    return super.ask(key, observed, give, within)
  }

  override step<T>(key: string, run: (attempt: Attempt) => unknown, policy?: RetryPolicy): Promise<T> {
    const observed = (attempt: Attempt): unknown => {
      if (attempt.number === 1) this.#observer.ran(key)
      return run(attempt)
    }
    return super.step(key, observed, policy)
  }

  override settle(settlement: Settlement): Promise<void> | undefined {
    const { appended } = this
    const persisted = super.settle(settlement)
    if (this.appended > appended) this.#observer.settled()
    return persisted
  }
}

/** A copy: the handler may change the value it got. */
function snapshot(event: TraceEvent): TraceEvent {
  return 'value' in event ? { ...event, value: structuredClone(event.value) } : event
}
