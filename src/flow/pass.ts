// One run of a handler, from its top, against the journal.
//
// Invariants; the numbers are the engine rules in ARCHITECTURE.md, and tests cite them:
//  1. A question suspends by a promise that never settles. Nothing that outlives the pass holds its frame.
//  2. A pass ends when nothing runs, nothing is left to settle, an ask is open, and one macrotask turn brought no io call.
//  3. After the end io calls never settle. A handler that returns with calls open wins over them.
//  4. A wrong or repeated key fails the pass, whatever the handler catches.
//  8. What is delivered has been through JSON, live and replayed alike.
//  9. Failures are journaled like results.
// 10. No ask, step or yield inside a step.
// 12. Past the size limit no further step starts.
import { AsyncLocalStorage } from 'node:async_hooks'
import { toJsonText } from '../protocol/json.ts'
import type { Answers, Asker } from './answering.ts'
import { Answering } from './answering.ts'
import type { Asking, Call, CallKind } from './call.ts'
import { attempt, isKey, kindOf, newCall, parked, valueOf } from './call.ts'
import {
  Declined,
  interrupted,
  keyInvalid,
  keyKind,
  keyReused,
  mixedStyles,
  nestedCall,
  noTask,
  timeLimit,
  toFailure,
  tooLarge,
} from './errors.ts'
import type { Entry, Tag } from './journal.ts'
import type { Outcome, PassInput } from './carrier.ts'
import type { Question } from './question.ts'
import { pinOf } from './question.ts'
import { scheduler as defaultScheduler } from './scheduler.ts'
import type { Settlement, Settler } from './settling.ts'
import { Settling } from './settling.ts'
import type { Interruptible, Running } from './underway.ts'
import { Underway } from './underway.ts'

/** Stands between a scope's key and the keys inside it; no author's key can hold it. */
export const SCOPE_SEPARATOR = '>'

/** Which step of which pass is running. In strict passes only: it makes every await almost three times dearer. */
let runningStep: AsyncLocalStorage<{ pass: Pass; key: string }> | undefined

/** For passes of which nobody keeps track. */
const elsewhere = new Underway<Interruptible>()

export class Pass implements Settler, Asker, Interruptible {
  readonly input: PassInput
  deadline = 0
  before: Running | undefined
  after: Running | undefined
  readonly #finish: (outcome: Outcome) => void
  readonly #calls = new Map<string, Call>()
  /** These two are made with the first io call: many handlers never make one. */
  #settlingMade: Settling | undefined
  #answeringMade: Answering | undefined
  /** Steps and validations under way. */
  #busy = 0
  /** Entries appended in this pass. */
  #fresh = 0
  /** Milliseconds from the flow's start to its last settlement. */
  #elapsed = 0
  #asked = false
  #handover = false
  interrupted = false
  #detaching = false
  /** Handed over at a yield or detached: the handler is not heard any more, and only what already runs is still recorded. */
  #yielded = false
  /** How the pass ended, once it has. */
  #ended: Outcome['kind'] | undefined
  #loggedLate = false
  #insideStep: string | undefined
  /** Prefixes of the keys inside them. */
  #closedScopes: Set<string> | undefined
  #abort: AbortController | undefined
  #cleanUps: (() => void)[] | undefined

  constructor(input: PassInput, finish: (outcome: Outcome) => void) {
    this.input = input
    this.#finish = finish
  }

  /** `conclude` says what the handler's value makes of the pass. */
  start(run: () => unknown, conclude: (value: unknown, pass: Pass) => Outcome = done): void {
    const { cancel, limits } = this.input
    if (cancel?.cancelled) return this.#end({ kind: 'cancelled' })
    cancel?.listen(() => this.#end({ kind: 'cancelled' }))
    this.#underway.add(this, limits.passMs)
    attempt(
      run,
      (value) => this.#returned(value, conclude),
      (error) => this.#threw(error),
    )
  }

  get now(): number {
    return this.input.flow.startedAt + this.#elapsed
  }

  /** Made when first asked for: most handlers never look at it. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController()
      if (this.#overForGood || (this.ended && this.interrupted)) this.#abort.abort()
    }
    return this.#abort.signal
  }

  get #underway(): Underway<Interruptible> {
    return this.input.underway ?? elsewhere
  }

  get ended(): boolean {
    return this.#ended !== undefined
  }

  get #overForGood(): boolean {
    return this.#ended === 'done' || this.#ended === 'failed' || this.#ended === 'cancelled'
  }

  /** A replay repeats no notification: it is silent until its first new settlement. */
  get silent(): boolean {
    return this.ended || (this.#fresh === 0 && this.#replays)
  }

  /** Whether the handler goes through again what it did in a round before. By hand it goes on from its own state. */
  get #replays(): boolean {
    const { flow, flowState, journal } = this.input
    return flow.round > 0 && (flowState.byHand === undefined || journal.length > 0)
  }

  /** Whether this flow has asked through io, now or in a round before. */
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
    // What was opened while the pass ended is closed too.
    if (this.ended && this.#ended !== 'done') this.#cleanUp()
  }

  ask<T>(key: string, toQuestion: () => Question, give: Asking['give']): Promise<T> {
    const call = this.#begin(key, 'ask')
    if (call === undefined) return parked()
    if (this.input.flowState.byHand !== undefined) return this.fail(mixedStyles(key))
    this.#asked = true
    try {
      const question = toQuestion()
      call.asking = { question, pin: pinOf(question), give }
    } catch (error) {
      return this.fail(error)
    }
    this.#answering.answer(call, call.asking)
    return call.promise as Promise<T>
  }

  step<T>(key: string, run: () => T | Promise<T>): Promise<T> {
    const call = this.#begin(key, 'step')
    if (call === undefined) return parked()
    const { promise } = call as { promise: Promise<T> }
    if (this.#isRecorded(call)) return promise
    if (this.#outgrown()) return parked()
    if (this.#handsOver()) {
      // Never begun, so it neither keeps the pass from ending nor is missed by it.
      call.settled = true
      return parked()
    }
    this.#busy += 1
    this.#insideStep = key
    attempt(
      this.input.strict ? () => strictly(this, key, run) : run,
      (value) => this.#worked(call, value === undefined ? 'sv' : 's', value ?? null),
      (error) => this.#worked(call, 'se', toFailure(error)),
    )
    this.#insideStep = undefined
    return promise
  }

  scope<T>(key: string, run: () => T | Promise<T>): Promise<T> {
    const call = this.#begin(key, 'scope')
    if (call === undefined) return parked()
    const { promise } = call as { promise: Promise<T> }
    if (this.#isRecorded(call)) return promise
    // Not busy: its own calls keep the pass going, and it may be parked on one of them.
    attempt(
      run,
      (value) => this.#record(call, value === undefined ? 'cv' : 'c', value ?? null),
      (error) =>
        this.#record(
          call,
          'ce',
          error instanceof Declined ? { declined: error.key, action: error.action } : toFailure(error),
        ),
    )
    return promise
  }

  /** Where the author says that a hand-over does no harm. */
  yield(): Promise<void> {
    if (this.#refuses('yield')) return parked()
    if (!this.#handsOver()) return Promise.resolve()
    // The next pass goes on from here at once. Whatever another branch did meanwhile would come too early in this one.
    this.#yielded = true
    return parked()
  }

  /** Whether the flow is a task now. Where it becomes one, the next pass goes on from here. */
  detach(required: boolean): Promise<boolean> {
    if (this.#refuses('detach')) return parked()
    const { journalWriter, mayDetach } = this.input
    if (journalWriter !== undefined) return Promise.resolve(true)
    if (!mayDetach) return required ? this.fail(noTask()) : Promise.resolve(false)
    this.#detaching = true
    this.#yielded = true
    this.#settling.touch()
    return parked()
  }

  /** Answers that come while the pass runs, to questions that its journalWriter has shown. */
  offer(answers: Answers): void {
    if (this.ended) return
    for (const [key, answer] of Object.entries(answers)) this.#answering.offer(key, answer)
    this.#settling.touch()
  }

  checkKey(key: unknown): key is string {
    if (isKey(key)) return true
    void this.fail(keyInvalid(key))
    return false
  }

  /** The time limit has passed. */
  expire(): void {
    void this.fail(timeLimit(this.input.limits.passMs, this.#unsettled()))
  }

  /** The instance goes down now: what is recorded is handed over, and a step that still runs is told to stop. */
  interrupt(): void {
    if (this.ended) return
    // A handler that never used io cannot know that it may be run again.
    if (this.#calls.size === 0 && !this.#replays) return void this.fail(interrupted())
    this.#handover = true
    this.interrupted = true
    this.#settling.touch()
  }

  fail(error: unknown): Promise<never> {
    this.#end({ kind: 'failed', error })
    return parked()
  }

  find(key: string): Call | undefined {
    return this.#calls.get(key)
  }

  answered(call: Call, payloadText: string): void {
    this.#settling.add({ call, tag: 'a', payloadText })
  }

  answeredLate(call: Call, entry: Entry): void {
    this.#settling.addLate(call, entry)
  }

  removeSkipped(entry: Entry): void {
    this.#settling.removeSkipped(entry)
  }

  busy(change: 1 | -1): void {
    this.#busy += change
    this.#settling.touch()
  }

  get #settling(): Settling {
    const { journal, scheduler = defaultScheduler, logger } = this.input
    return (this.#settlingMade ??= new Settling(journal, this.#calls, this, scheduler, logger))
  }

  get #answering(): Answering {
    return (this.#answeringMade ??= new Answering(this))
  }

  #begin(key: string, kind: CallKind): Call | undefined {
    if (this.#refuses(key) || this.#yielded || this.#inClosedScope(key)) return undefined
    if (this.#calls.has(key)) {
      void this.fail(keyReused(key))
      return undefined
    }
    const entry = this.input.journal.get(key)
    const call = newCall(key, kind, entry)
    this.#calls.set(key, call)
    this.input.trace?.({ type: 'call', key, kind })
    if (entry !== undefined && kindOf(entry) !== kind) {
      void this.fail(keyKind(key, kindOf(entry), kind))
      return undefined
    }
    this.#settling.touch()
    return call
  }

  /** Whether this io call must come to nothing: the pass is over, or the call was made inside a step. */
  #refuses(key: string): boolean {
    if (this.ended) {
      if (!this.#loggedLate) this.input.logger.warn(`io was called ("${key}") after its pass ended; it never settles.`)
      this.#loggedLate = true
      return true
    }
    const store = runningStep?.getStore()
    const inside = this.#insideStep ?? (store?.pass === this ? store.key : undefined)
    if (inside === undefined) return false
    void this.fail(nestedCall(key, inside))
    return true
  }

  /** Whether the journal holds this step or scope; then its turn comes. */
  #isRecorded(call: Call): boolean {
    const { entry } = call
    if (entry?.skipped) this.#settling.addLate(call, entry)
    return entry !== undefined
  }

  /** A pass makes progress before it may be handed over, so that a flow always gets on. */
  #handsOver(): boolean {
    if (!this.#handover && this.#fresh > 0 && this.input.wantsHandover?.()) this.#handover = true
    if (this.#handover) this.#settling.touch()
    return this.#handover
  }

  #outgrown(): boolean {
    const { journal, limits } = this.input
    if (journal.bytes <= limits.journalBytes) return false
    void this.fail(tooLarge(journal.bytes, limits.journalBytes, journal.largest(3)))
    return true
  }

  #worked(call: Call, tag: Tag, result: unknown): void {
    this.#busy -= 1
    this.#record(call, tag, result)
  }

  #record(call: Call, tag: Tag, result: unknown): void {
    if (this.ended) return
    try {
      const payloadText = toJsonText(result, `the ${call.kind} "${call.key}"`)
      this.#settling.add({ call, tag, payloadText })
    } catch (error) {
      void this.fail(error)
    }
  }

  replay(call: Call, entry: Entry): void {
    this.#elapsed = Math.max(this.#elapsed, entry.at)
    this.#deliver(call, entry.tag, entry.payload, true)
  }

  settle({ call, tag, payloadText }: Settlement): Promise<void> | undefined {
    const { journal, flow, journalWriter, now = Date.now } = this.input
    if (call.kind === 'scope') {
      // The next pass goes through it again, with a handler that is heard.
      if (this.#yielded) return undefined
      this.#closeScope(`${call.key}${SCOPE_SEPARATOR}`)
    }
    // What is still going on inside a scope that is over is not worth keeping: no later pass looks at it.
    if (!this.#inClosedScope(call.key)) {
      this.#elapsed = Math.max(this.#elapsed, now() - flow.startedAt)
      journal.append(tag, call.key, this.#elapsed, payloadText)
      this.#fresh += 1
    }
    if (journalWriter === undefined) {
      this.#deliver(call, tag, JSON.parse(payloadText), false)
      return undefined
    }
    return journalWriter.persist(journal).then(
      () => {
        if (!this.ended) this.#deliver(call, tag, JSON.parse(payloadText), false)
      },
      (error: unknown) => void this.fail(error),
    )
  }

  #inClosedScope(key: string): boolean {
    if (this.#closedScopes === undefined) return false
    for (let end = key.indexOf(SCOPE_SEPARATOR); end !== -1; end = key.indexOf(SCOPE_SEPARATOR, end + 1)) {
      if (this.#closedScopes.has(key.slice(0, end + 1))) return true
    }
    return false
  }

  #closeScope(prefix: string): void {
    this.#settling.dropScope(prefix)
    this.#answering.dropScope(prefix)
    ;(this.#closedScopes ??= new Set()).add(prefix)
  }

  #deliver(call: Call, tag: Tag, payload: unknown, replayed: boolean): void {
    const { key } = call
    call.settled = true
    if (this.#yielded) return
    try {
      const value = valueOf(call, tag, payload)
      this.input.trace?.({ type: 'settle', key, value, replayed })
      call.resolve(value)
    } catch (error) {
      this.input.trace?.({ type: 'settle', key, error, replayed })
      // The handler may look at it later, or never: an unhandled rejection would end the whole process.
      call.promise.catch(() => {})
      call.reject(error)
    }
  }

  #returned(value: unknown, conclude: (value: unknown, pass: Pass) => Outcome): void {
    if (this.#yielded || this.ended) return
    let outcome: Outcome
    try {
      outcome = conclude(value, this)
    } catch (error) {
      return this.#threw(error)
    }
    this.#warnOfDropped()
    this.#end(outcome, true)
  }

  #threw(error: unknown): void {
    if (!this.#yielded) this.#end({ kind: 'failed', error })
  }

  canEnd(): boolean {
    if (this.#busy > 0 && !this.interrupted) return false
    return this.#handover || this.#detaching || this.#answeringMade?.anyOpen === true
  }

  canShow(): boolean {
    return this.input.journalWriter !== undefined && this.#answeringMade?.anyUnshown === true
  }

  show(): void {
    this.input.journalWriter?.show(this.#answering.show())
  }

  /** Nothing is left to do but to wait for the client, or for whoever takes the flow over. */
  quiet(): void {
    if (this.#outgrown()) return
    const { journal } = this.input
    try {
      const { questions, flowState } = this.#answering.close(this.#fresh > 0 || this.#detaching)
      if (this.#detaching) this.#end({ kind: 'detached', journal, flowState })
      else if (questions.size > 0) this.#end({ kind: 'asks', questions, journal, flowState })
      else this.#end({ kind: 'deferred', journal, flowState })
    } catch (error) {
      void this.fail(error)
    }
  }

  #end(outcome: Outcome, returned = false): void {
    if (this.ended) return
    this.#ended = outcome.kind
    this.#underway.delete(this)
    this.input.cancel?.listen(undefined)
    this.#settlingMade?.stop()
    // A handler that came to its end has cleaned up itself.
    if (!returned) this.#cleanUp()
    if (this.#overForGood || this.interrupted) this.#abort?.abort()
    this.#finish(outcome)
  }

  #cleanUp(): void {
    for (const cleanUp of this.#cleanUps?.splice(0) ?? []) {
      try {
        cleanUp()
      } catch (error) {
        this.input.logger.error('A clean-up given to io.onSuspend failed.', { error })
      }
    }
  }

  #warnOfDropped(): void {
    const dropped = this.#unsettled()
    if (dropped !== '') this.input.logger.warn(`The handler returned with ${dropped} still open; they are dropped.`)
  }

  #unsettled(): string {
    const keys = [...this.#calls.values()].filter(({ settled }) => !settled).map(({ key }) => `"${key}"`)
    return keys.length > 5 ? `${keys.slice(0, 5).join(', ')} and ${keys.length - 5} more` : keys.join(', ')
  }
}

function done(value: unknown): Outcome {
  return { kind: 'done', value }
}

function strictly<T>(pass: Pass, key: string, run: () => T): T {
  runningStep ??= new AsyncLocalStorage()
  return runningStep.run({ pass, key }, run)
}
