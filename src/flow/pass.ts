// One run of a handler, from its top, against the journal.
//
// Invariants. The numbers are the engine rules in ARCHITECTURE.md, and tests cite them:
//  1. A question suspends by a promise that never settles. Nothing that outlives the pass refers to its frame.
//  2. A pass ends when nothing runs, nothing is left to settle, an ask is open, and one macrotask turn had no io call.
//  3. After the end, io calls never settle. If the handler returns with calls open, its result wins.
//  4. A wrong or repeated key fails the pass, even if the handler catches the error.
//  8. Every delivered value has been through JSON, live and replayed alike.
//  9. Failures are journaled like results.
// 10. No ask, event, step or yield inside a step.
// 12. Past the size limit no further step starts.
import { toJsonText } from '../protocol/json.ts'
import type { Answers, Asker } from './answering.ts'
import { Answering } from './answering.ts'
import { Attempts } from './attempts.ts'
import type { Asking, Call, CallKind } from './call.ts'
import {
  attempt,
  endScopes,
  hush,
  isFloatingFailure,
  isKey,
  kindOf,
  maybeNested,
  newCall,
  parked,
  unsettledKeys,
  valueOf,
} from './call.ts'
import type { ClientInfo } from './caller.ts'
import type { Outcome, PassInput, TraceEvent } from './carrier.ts'
import {
  cannotDetach,
  interrupted,
  keyInvalid,
  keyKind,
  keyReused,
  mixedStyles,
  nestedCall,
  timeLimit,
  scopeFailure,
  tooLarge,
} from './errors.ts'
import type { EventHost } from './event.ts'
import type { ReceivedEvent } from './event-source.ts'
import { callSafely } from '../protocol/call-safely.ts'
import { logRecorded, nameOf } from './failure-log.ts'
import type { Entry, Tag } from './journal.ts'
import { actionIn } from './journal.ts'
import { mistakeOnReturn, notAwaitedError, rememberKey } from './mistakes.ts'
import { stepAround } from './nesting.ts'
import {
  lateCall,
  logCleanUp,
  logLost,
  placeOf,
  warnOfChange,
  warnOfDropped,
  warnOfEvent,
  warnOfFloating,
} from './pass-log.ts'
import type { HandlerEnds, Phase } from './phase.ts'
import { isOver } from './phase.ts'
import type { Question } from './question.ts'
import { pinOf } from './question.ts'
import type { Attempt, RetryPolicy } from './retry.ts'
import { ONLY_ATTEMPT } from './retry.ts'
import { scheduler as defaultScheduler } from './scheduler.ts'
import { ClosedScopes, SCOPE_SEPARATOR } from './scopes.ts'
import type { Settlement, Settler } from './settling.ts'
import { Settling } from './settling.ts'
import type { StepHost } from './step-run.ts'
import { NOTHING_THROWN, runStep, stepReturned, stepThrew } from './step-run.ts'
import { rememberText } from './strict.ts'
import type { Deadline, TimedHost } from './timed.ts'
import { deadlineOf, dueAgain, expires, wakeAt } from './timed.ts'
import type { Interruptible, Running } from './underway.ts'
import { Underway } from './underway.ts'
import { Waits } from './waits.ts'

const PLAIN_ENDS: HandlerEnds = { conclude: (value) => ({ kind: 'done', value }), isResult: () => false }

/** How long a strict pass waits, after its handler has returned, for calls that nothing awaits. */
const HELD_MS = 1_000

/** Times out the passes that no list of an app holds. */
const unlisted = new Underway<Interruptible>()

export class Pass implements Settler, Asker, Interruptible, StepHost, TimedHost, EventHost {
  readonly input: PassInput
  deadline = 0
  before: Running | undefined
  after: Running | undefined
  readonly #finish: (outcome: Outcome) => void
  readonly #calls = new Map<string, Call>()
  /** The keys of the events that the handler has created and does not await yet. */
  #reserved: Set<string> | undefined
  /** Created with the first io call: many handlers never make one. */
  #lazySettling: Settling | undefined
  #lazyAnswering: Answering | undefined
  #lazyWaits: Waits | undefined
  /** How many steps and validations run. */
  #busy = 0
  /** How many entries this pass has appended. */
  appended = 0
  /** Milliseconds from the flow's start to its last settlement. */
  #elapsed = 0
  /** When the answers of the round were received. Not known, and not needed, if there are none. */
  #beganAt = 0
  #asked = false
  hasNeeds = false
  #ends: HandlerEnds = PLAIN_ENDS
  #phase: Phase = 'running'
  /** The instance stops now: the pass ends without waiting for running steps. */
  interrupted = false
  /** True if a late io call needs no line in the log: there is one, or the pass failed by itself, and its caller knows. */
  #isLateKnown = false
  insideStep: string | undefined
  #closedScopes: ClosedScopes | undefined
  #abort: AbortController | undefined
  stepAborts: Map<string, AbortController> | undefined
  #cleanUps: (() => void)[] | undefined
  /** Set in the phase 'returned'. Called when what nothing awaits is done, or waits for an answer. */
  #heldReturn: (() => void) | undefined

  constructor(input: PassInput, finish: (outcome: Outcome) => void) {
    this.input = input
    if (input.answers !== undefined) this.#beganAt = (input.now ?? Date.now)()
    this.#finish = finish
  }

  /** Runs the handler. */
  start(run: () => unknown, ends: HandlerEnds = PLAIN_ENDS): void {
    this.#ends = ends
    const { cancel, limits } = this.input
    if (cancel?.cancelled) return this.#end({ kind: 'cancelled' })
    cancel?.listen(() => this.#end({ kind: 'cancelled' }))
    this.#underway.add(this, limits.passMs)
    attempt(
      run,
      (value) => this.#returned(value),
      (error) => (ends.isResult(error) ? this.#returned(error) : this.#threw(error)),
    )
  }

  get now(): number {
    return this.input.flow.startedAt + this.#elapsed
  }

  /** As it was when the handler first read it, in whichever round. */
  get client(): ClientInfo | undefined {
    const { flowState, source } = this.input
    if (flowState.client === undefined && source !== undefined) flowState.client = source.client
    return flowState.client
  }

  /** Created on first use: most handlers never read it. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController()
      if (this.stopsWork) this.#abort.abort()
    }
    return this.#abort.signal
  }

  get #underway(): Underway<Interruptible> {
    return this.input.underway ?? unlisted
  }

  get ended(): boolean {
    return isOver(this.#phase)
  }

  /** True if what still runs is to stop: nothing will use its results, or another pass repeats it. A call that succeeded aborts nothing. */
  get stopsWork(): boolean {
    return this.#phase === 'failed' || this.#phase === 'cancelled' || (this.ended && this.interrupted)
  }

  /** True if the handler is not heard any more. The next pass runs it from the top. */
  get #unheard(): boolean {
    return this.#phase === 'yielded' || this.#phase === 'detaching'
  }

  /** A replay repeats no notification: the pass is silent until its first new settlement. */
  get silent(): boolean {
    return this.ended || (this.appended === 0 && this.#replays)
  }

  /** True if the handler repeats what it did in an earlier round. By hand, it continues from its own state instead. */
  get #replays(): boolean {
    const { flow, flowState } = this.input
    return flow.round > 0 && flowState.byHand === undefined
  }

  get hasAsked(): boolean {
    const { flowState, journal } = this.input
    return (
      this.#asked ||
      journal.hasAnswers() ||
      (flowState.byHand === undefined && flowState.open.size + flowState.held.size > 0)
    )
  }

  onSuspend(cleanUp: () => void): void {
    ;(this.#cleanUps ??= []).push(cleanUp)
    // The handler may still open something after the pass has ended.
    if (this.ended && this.#phase !== 'done') this.#cleanUp()
  }

  ask<T>(key: string, toQuestion: () => Question, give: Asking['give'], within?: Deadline): Promise<T> {
    const call = this.#begin(key, 'ask')
    if (call === undefined) return parked()
    if (this.input.flowState.byHand !== undefined) return this.fail(mixedStyles(key))
    this.#asked = true
    try {
      const question = toQuestion()
      const deadline = within && call.entry === undefined ? deadlineOf(this.waits, key, within) : undefined
      call.asking = { question, pin: pinOf(question), give, deadline }
      if (this.input.observed !== undefined && call.entry === undefined && !question.isEvent) {
        this.input.observed.ask(key, question.needs[0] ?? '')
      }
    } catch (error) {
      return this.fail(error, key)
    }
    this.#answering.answer(call, call.asking)
    return call.promise as Promise<T>
  }

  step<T>(key: string, run: (attempt: Attempt) => unknown, policy?: RetryPolicy): Promise<T> {
    const call = this.#begin(key, 'step')
    if (call === undefined) return parked()
    const { promise } = call as { promise: Promise<T> }
    if (this.#isRecorded(call)) return promise
    if (this.#isTooLarge()) return parked()
    if (this.isLeaving()) {
      // The step never started, so the pass must not wait for it.
      call.settled = true
      return parked()
    }
    if (policy !== undefined) new Attempts(this, call, run, policy).begin()
    else
      runStep(
        this,
        call,
        () => run(ONLY_ATTEMPT),
        (value) => stepReturned(this, call, value),
        (error) => stepThrew(this, call, error),
      )
    return promise
  }

  sleep(key: string, until: number | Date): Promise<void> {
    const call = this.#begin(key, 'sleep')
    if (call === undefined) return parked()
    const { promise } = call as { promise: Promise<void> }
    if (this.#isRecorded(call)) return promise
    // A task is released while it sleeps. Otherwise another instance may as well wait.
    if (this.input.journalWriter === undefined) this.isLeaving()
    try {
      wakeAt(this, call, this.waits.dueAt(key, until, 'sleep', `The sleep "${key}"`))
    } catch (error) {
      return this.fail(error, key)
    }
    return promise
  }

  settleAt(settlement: Settlement & { readonly at: number }): void {
    this.#settling.add(settlement)
  }

  withdraw(key: string): boolean {
    return this.#answering.expire(key)
  }

  expires(call: Call, asking: Asking): boolean {
    return expires(this, call, asking)
  }

  dueAgain(entry: Entry): void {
    dueAgain(this, entry)
  }

  isResult(thrown: unknown): boolean {
    return this.#ends.isResult(thrown)
  }

  attemptOf({ key }: Call): number {
    return (this.#lazyWaits?.carried(key)?.attempts ?? 0) + 1
  }

  scope<T>(key: string, run: () => unknown): Promise<T> {
    const call = this.#begin(key, 'scope')
    if (call === undefined) return parked()
    const { promise } = call as { promise: Promise<T> }
    if (this.#isRecorded(call)) return promise
    // Does not count as busy: its own calls keep the pass running, and it may wait for an answer.
    attempt(
      run,
      (value) => this.record(call, value === undefined ? 'cv' : 'c', value ?? null),
      (error) => {
        // It ends the round, and not only the scope.
        if (this.#ends.isResult(error)) {
          endScopes(this.#calls.values(), key)
          return this.#returned(error)
        }
        this.record(call, 'ce', scopeFailure(error), error ?? NOTHING_THROWN)
      },
    )
    return promise
  }

  /** The author's permission to hand the flow over here. */
  yield(): Promise<void> {
    if (this.refuses('yield')) return parked()
    if (!this.isLeaving()) return Promise.resolve()
    // The next pass continues from here immediately. Results of another branch must not be delivered in this one.
    if (this.#phase === 'leaving') this.#phase = 'yielded'
    return parked()
  }

  /** Resolves with `true` if the flow is a task already. If it becomes one, the next pass continues from here. */
  detach(required: boolean): Promise<boolean> {
    if (this.refuses('detach') || this.#phase === 'returned') return parked()
    const { journalWriter, mayDetach, hasStore, target } = this.input
    if (journalWriter !== undefined) return Promise.resolve(true)
    if (!mayDetach && !required) return Promise.resolve(false)
    if (!mayDetach) return this.fail(cannotDetach(nameOf(target), target, hasStore))
    this.#phase = 'detaching'
    this.#settling.touch()
    return parked()
  }

  eventRefused(key: string, why: string): void {
    this.input.events?.refuse(key)
    warnOfEvent(this.input, key, why)
  }

  /** Gives the pass what arrived while it runs: events, and answers to questions that its journal writer has shown. */
  offer(answers: Answers, events: readonly (readonly [key: string, event: ReceivedEvent])[]): void {
    if (this.ended) return
    let last = 0
    for (const [key, answer] of Object.entries(answers)) {
      this.#answering.offer(key, answer)
      last = Math.max(last, this.receivedAt(key))
    }
    for (const [key, event] of events) {
      this.#answering.offerEvent(key, event)
      last = Math.max(last, event.at)
    }
    // After all of them: one that came late must not expire the question of another that came in time.
    this.#lazyWaits?.fireDue(last)
    this.#settling.touch()
  }

  checkKey(key: unknown): key is string {
    if (isKey(key)) return true
    void this.fail(keyInvalid(key))
    return false
  }

  /** Called when the time limit has passed. */
  expire(): void {
    const { limits, strict, journalWriter } = this.input
    // Strict passes find a question inside a step by themselves.
    const nested = strict ? undefined : maybeNested(this.#calls.values())
    const keys = unsettledKeys(this.#calls.values())
    void this.fail(timeLimit(limits.passMs, keys, journalWriter !== undefined, nested))
  }

  /** The instance stops now: hands over what is recorded, and aborts the signal of a running step. */
  interrupt(): void {
    if (this.ended) return
    // A handler that never used io does not expect to be run again.
    if (this.#calls.size === 0 && this.input.journal.length === 0 && !this.#replays)
      return void this.fail(interrupted())
    if (this.#phase === 'running') this.#phase = 'leaving'
    this.interrupted = true
    this.#settling.touch()
  }

  fail(error: unknown, key?: string): Promise<never> {
    if (!this.ended) this.#isLateKnown = true
    this.#end({ kind: 'failed', error, key })
    return parked()
  }

  find(key: string): Call | undefined {
    return this.#calls.get(key)
  }

  answered(call: Call, payloadText: string, at: number | undefined): void {
    this.#settling.add({ call, tag: 'a', payloadText, at })
  }

  receivedAt(key: string): number {
    return this.input.receivedAt?.(key) ?? this.#beganAt
  }

  answeredLate(call: Call, entry: Entry): void {
    this.#settling.addLate(call, entry)
  }

  questionChanged(key: string, pin: string, asking: Asking): void {
    warnOfChange(this.input, key, pin, asking)
  }

  shown({ pin, question }: Asking): void {
    if (this.input.strict) rememberText(pin, question.text())
  }

  removeSkipped(entry: Entry): void {
    this.#settling.removeSkipped(entry)
  }

  mustWait(settlement: Settlement): boolean {
    return this.#lazyAnswering?.isReadingBefore(settlement) === true
  }

  busy(change: 1 | -1): void {
    this.#busy += change
    this.#settling.touch()
  }

  get #settling(): Settling {
    const { journal, scheduler = defaultScheduler } = this.input
    return (this.#lazySettling ??= new Settling(journal, this.#calls, this, scheduler))
  }

  get waits(): Waits {
    return (this.#lazyWaits ??= new Waits(this))
  }

  /** By the clock of the process. A test has a clock of its own, and sets no limit. */
  get leftMs(): number {
    return this.input.waiting === undefined ? Infinity : this.deadline - performance.now()
  }

  /** True while a step or a validation runs. */
  get isBusy(): boolean {
    return this.#busy > 0
  }

  get #answering(): Answering {
    return (this.#lazyAnswering ??= new Answering(this))
  }

  reserve(key: string): boolean {
    if (this.refuses(key)) return false
    if (this.#isUsed(key)) {
      void this.fail(keyReused(key))
      return false
    }
    this.#reserved = (this.#reserved ?? new Set()).add(key)
    return true
  }

  unreserve(key: string): void {
    this.#reserved?.delete(key)
  }

  #isUsed(key: string): boolean {
    return this.#calls.has(key) || this.#reserved?.has(key) === true
  }

  #begin(key: string, kind: CallKind): Call | undefined {
    if (this.refuses(key) || this.#unheard || this.#phase === 'returned' || this.isInClosedScope(key)) return undefined
    if (this.#isUsed(key)) {
      void this.fail(keyReused(key))
      return undefined
    }
    const entry = this.input.journal.get(key)
    const call = newCall(key, kind, entry, this.input.strict)
    if (this.input.strict) rememberKey(this.input.forms, key)
    this.#calls.set(key, call)
    this.input.trace?.({ type: 'call', key, kind })
    if (entry !== undefined && kindOf(entry) !== kind) {
      void this.fail(keyKind(key, kindOf(entry), kind))
      return undefined
    }
    this.#settling.touch()
    return call
  }

  /** True if this io call must not be served: the pass has ended, or the call was made inside a step. */
  refuses(key: string): boolean {
    if (this.ended) {
      if (!this.#isLateKnown) lateCall(this.input, key, this.#phase === 'done')
      this.#isLateKnown = true
      return true
    }
    const inside = this.insideStep ?? stepAround(this)
    if (inside === undefined) return false
    void this.fail(nestedCall(key, inside))
    return true
  }

  /** True if the journal has this step or scope. It then settles in its turn. */
  #isRecorded(call: Call): boolean {
    const { entry } = call
    if (entry?.skipped) this.#settling.addLate(call, entry)
    return entry !== undefined
  }

  /** Asks whether to hand over, but only once the pass has recorded something: every pass must make progress. */
  isLeaving(): boolean {
    if (this.#phase === 'running' && this.appended > 0 && this.input.wantsHandover?.()) this.#phase = 'leaving'
    if (this.#phase === 'running') return false
    this.#settling.touch()
    return true
  }

  /** Fails the pass if its journal is larger than the limit. */
  #isTooLarge(): boolean {
    const { journal, limits } = this.input
    if (journal.bytes <= limits.journalBytes) return false
    void this.fail(tooLarge(journal.bytes, limits.journalBytes, journal.largest(3)))
    return true
  }

  record(call: Call, tag: Tag, result: unknown, thrown?: unknown): void {
    if (this.ended) return logLost(this.input, call, thrown, this.#phase === 'done')
    call.failure = thrown
    try {
      const payloadText = toJsonText(result, `the ${call.kind} "${call.key}"`)
      this.#settling.add(thrown === undefined ? { call, tag, payloadText } : { call, tag, payloadText, thrown })
    } catch (error) {
      void this.fail(error, call.key)
    }
  }

  replay(call: Call, entry: Entry): void {
    this.#elapsed = Math.max(this.#elapsed, entry.at)
    if (call.kind === 'scope' && this.input.flowState.waits !== undefined)
      this.waits.dropScope(`${call.key}${SCOPE_SEPARATOR}`)
    this.#deliver(call, entry.tag, entry.payload, true)
  }

  settle({ call, tag, payloadText, thrown }: Settlement): Promise<void> | undefined {
    const { journal, flow, journalWriter, now = Date.now } = this.input
    if (this.#phase === 'returned') {
      if (thrown !== undefined) logRecorded(placeOf(this.input), thrown, call)
      this.#deliver(call, tag, JSON.parse(payloadText), false)
      return undefined
    }
    if (call.kind === 'scope') {
      // The next pass runs the scope again, and its handler is heard.
      if (this.#unheard) return undefined
      this.#closeScope(`${call.key}${SCOPE_SEPARATOR}`)
    }
    if (!this.isInClosedScope(call.key)) {
      this.#elapsed = Math.max(this.#elapsed, now() - flow.startedAt)
      journal.append(tag, call.key, this.#elapsed, payloadText)
      this.appended += 1
    }
    if (journalWriter === undefined) {
      if (thrown !== undefined) logRecorded(placeOf(this.input), thrown, call)
      this.#deliver(call, tag, JSON.parse(payloadText), false)
      return undefined
    }
    return journalWriter.persist(journal, this.#lazyWaits?.takeNewTokens()).then(
      () => {
        if (thrown !== undefined) logRecorded(placeOf(this.input), thrown, call)
        if (!this.ended) this.#deliver(call, tag, JSON.parse(payloadText), false)
      },
      (error: unknown) => void this.fail(error),
    )
  }

  /** True if what the call results in is not recorded: no later pass makes it. */
  isInClosedScope(key: string): boolean {
    return this.#closedScopes !== undefined && this.#closedScopes.contain(key)
  }

  #closeScope(prefix: string): void {
    this.#settling.dropScope(prefix)
    this.#answering.dropScope(prefix)
    if (this.input.flowState.waits !== undefined) this.waits.dropScope(prefix)
    this.#closedScopes ??= new ClosedScopes()
    this.#closedScopes.add(prefix)
  }

  #deliver(call: Call, tag: Tag, payload: unknown, replayed: boolean): void {
    const { key } = call
    call.settled = true
    if (tag === 'a' && this.input.observed !== undefined) this.input.observed.answered(key, actionIn(payload))
    if (this.input.flowState.waits !== undefined) this.waits.settled(key)
    if (this.#unheard) return
    try {
      const value = valueOf(call, tag, payload)
      this.#trace({ type: 'settle', key, value, replayed })
      call.resolve(value)
    } catch (error) {
      this.#trace({ type: 'settle', key, error, replayed })
      call.failure ??= error
      hush(call)
      call.reject(error)
    }
  }

  /** What happens after the handler has returned is no part of the flow. */
  #trace(event: TraceEvent): void {
    if (this.#phase !== 'returned') this.input.trace?.(event)
  }

  #returned(value: unknown, isFinal = false): void {
    if (this.#unheard || this.ended || (this.#phase === 'returned' && !isFinal)) return
    if (this.input.strict) {
      const mistake = mistakeOnReturn(this.input, this.#calls, isFinal)
      this.#heldReturn = undefined
      if (mistake === 'not known yet') return this.#holdReturn(() => this.#returned(value, true))
      if (mistake !== undefined) return void this.fail(mistake.error, mistake.key)
    }
    let outcome: Outcome
    try {
      outcome = this.#ends.conclude(value, this)
    } catch (error) {
      return this.#threw(error)
    }
    warnOfDropped(this.input, this.#calls)
    this.#end(outcome, true)
  }

  /** Waits for a moment: long enough for most calls that fail, and not for ever if one never settles. */
  #holdReturn(again: () => void): void {
    const waking = new AbortController()
    this.#phase = 'returned'
    this.#heldReturn = () => {
      waking.abort()
      again()
    }
    this.#settling.touch()
    void (this.input.scheduler ?? defaultScheduler).sleep(HELD_MS, waking.signal).then(() => this.#heldReturn?.())
  }

  #threw(error: unknown): void {
    if (!this.#unheard) this.#end({ kind: 'failed', error })
  }

  canEnd(): boolean {
    if (this.#busy > 0 && !this.interrupted) return false
    if (this.#heldReturn !== undefined || this.#phase !== 'running') return true
    const hasOpen = this.#lazyAnswering?.anyOpen === true
    return this.#lazyWaits === undefined ? hasOpen : this.#lazyWaits.mayEnd(hasOpen)
  }

  canShow(): boolean {
    if (this.input.journalWriter === undefined) return false
    return this.#lazyAnswering?.anyUnshown === true || this.#lazyWaits?.unshown === true
  }

  show(): void {
    if (this.#lazyWaits !== undefined) this.#lazyWaits.unshown = false
    this.input.journalWriter?.show(this.#answering.show(), this.input.flowState.waits)
  }

  /** Ends the pass: it can only wait for the client, or for the instance that continues the flow. */
  quiet(): void {
    if (this.#heldReturn !== undefined) return this.#heldReturn()
    if (this.#isTooLarge() || this.#failsInClosedScope()) return
    const { journal } = this.input
    try {
      const detaching = this.#phase === 'detaching'
      const { questions, events, flowState } = this.#answering.close(this.appended > 0 || detaching)
      const isRunning = this.#phase === 'running'
      const dueAt = isRunning ? this.#lazyWaits?.nextDueAt : undefined
      const awaited = isRunning && events.length > 0
      const waiting = { ...(dueAt !== undefined && { dueAt }), ...(awaited && { events }), journal, flowState }
      if (detaching) this.#end({ kind: 'detached', journal, flowState })
      else if (questions.size > 0) this.#end({ kind: 'asks', questions, ...waiting })
      else if (dueAt !== undefined || awaited) this.#end({ kind: 'waiting', ...waiting })
      else this.#end({ kind: 'deferred', journal, flowState })
    } catch (error) {
      void this.fail(error)
    }
  }

  /**
   * Reports the failures in closed scopes that nothing awaits: no later pass makes their calls again. True if that failed the pass,
   * which it does in strict mode. Not done when the scope closes, because its steps may still run and fail then.
   */
  #failsInClosedScope(): boolean {
    if (this.#closedScopes === undefined) return false
    const { input } = this
    for (const call of this.#calls.values()) {
      if (!isFloatingFailure(call) || !this.isInClosedScope(call.key)) continue
      if (!input.strict) warnOfFloating(input, call)
      else {
        void this.fail(notAwaitedError(nameOf(input.target), call), call.key)
        return true
      }
    }
    return false
  }

  #end(outcome: Outcome, returned = false): void {
    if (this.ended) return
    this.#phase = outcome.kind
    this.#underway.delete(this)
    this.input.cancel?.listen(undefined)
    const lost = this.#lazySettling?.stop()
    this.#lazyWaits?.stop()
    if (lost !== undefined)
      for (const { call, thrown } of lost) logLost(this.input, call, thrown, this.#phase === 'done')
    // A handler that returned has cleaned up itself.
    if (!returned) this.#cleanUp()
    if (this.stopsWork) {
      this.#abort?.abort()
      if (this.stepAborts !== undefined) for (const abort of this.stepAborts.values()) abort.abort()
    }
    this.#finish(outcome)
  }

  #cleanUp(): void {
    for (const cleanUp of this.#cleanUps?.splice(0) ?? []) {
      callSafely(cleanUp, (error) => logCleanUp(this.input, error))
    }
  }
}
