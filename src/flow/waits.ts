// The due times of a flow: when a sleep ends, when a question expires, when the next attempt of a step begins.
//
// 1. A due time is set when its call is first reached, and is carried until the call settles. No replay sets it again.
// 2. What is due fires in the order of the due times.
// 3. One timer serves the pass, and it ends with the pass.
// 4. Before it is recorded that something is due, the carrier looks for what came until then, because an event may have been lost.
import { shown } from '../protocol/text.ts'
import type { PassInput } from './carrier.ts'
import { plainWaitAdvice, waitInvalid, waitTooLate, waitTooLong } from './errors.ts'
import type { Wait } from './flow-state.ts'
import type { Begun, FlowObserver, WaitEnd } from './observer.ts'
import { MAX_TIMER_MS, scheduler as defaultScheduler } from './scheduler.ts'

/** Something that the pass waits for. */
export interface PendingWait {
  readonly dueAt: number
  /** True if the pass must not end before it is due. */
  readonly holds: boolean
  /** True if it is recorded that it was due. */
  readonly recorded: boolean
  readonly fire: () => void
  /** Present if an observer watches the wait. */
  readonly observation?: Begun<WaitEnd>
}

/** What waiting needs from its pass. */
export interface WaitHost {
  readonly input: PassInput
  /** How long the pass may still take, in milliseconds. */
  readonly leftMs: number
  fail(error: unknown): unknown
}

/** No wait is due later. A `Date` ends at 8.64e15, and the clocks of instances and stores differ. */
const LATEST_DUE_AT = 8e15

export class Waits {
  readonly #host: WaitHost
  readonly #input: PassInput
  readonly #carried: Map<string, Wait>
  readonly #pending = new Map<string, PendingWait>()
  #timer: { readonly dueAt: number; readonly cancel: () => void } | undefined
  #hasNewToken = false
  #isLooking = false
  /** True if something was carried since the last `show`. */
  unshown = false

  constructor(host: WaitHost) {
    this.#host = host
    this.#input = host.input
    this.#carried = host.input.flowState.waits ??= new Map()
  }

  get now(): number {
    const { now = Date.now } = this.#input
    return now()
  }

  /** What an earlier pass, or this one, carries for the call. */
  carried(key: string): Wait | undefined {
    return this.#carried.get(key)
  }

  carry(key: string, wait: Wait): void {
    this.#carried.set(key, wait)
    this.unshown = true
    if (wait.event !== undefined) this.#hasNewToken = true
  }

  /** What is carried, if it has a token that no write has had yet: what is recorded later may depend on it. */
  takeNewTokens(): ReadonlyMap<string, Wait> | undefined {
    if (!this.#hasNewToken) return undefined
    this.#hasNewToken = false
    return this.#carried
  }

  /**
   * When the call is due: as it was set when the call was first reached, or from now on. Throws if the carrier cannot wait so long.
   * `what` names the call for messages.
   */
  dueAt(key: string, until: number | Date, kind: 'sleep' | 'ask', what: string): number {
    const carried = this.#carried.get(key)
    // An event that a retry waits for again has no due time yet.
    if (carried !== undefined && Number.isFinite(carried.dueAt)) return carried.dueAt
    const { now } = this
    const ms = until instanceof Date ? until.getTime() - now : until
    if (typeof ms !== 'number' || !Number.isFinite(ms))
      throw waitInvalid(what, shown(until instanceof Date ? ms : until))
    const { waiting, limits } = this.#input
    const limitMs = waiting === undefined ? Infinity : (waiting[`${kind}Ms`] ?? limits.passMs)
    // An answer or an event may come before the flow is given up. A sleep that is longer would never end.
    const leftMs = kind === 'ask' ? limitMs : Math.min(limitMs, this.#leftMs)
    if (waiting !== undefined && ms > leftMs) {
      const { advice = plainWaitAdvice(this.#input, kind) } = waiting
      throw waitTooLong(what, ms, { limitMs, leftMs }, advice)
    }
    const dueAt = now + Math.max(0, Math.ceil(ms))
    if (dueAt > LATEST_DUE_AT) throw waitTooLate(what, ms, kind)
    this.carry(key, { dueAt })
    return dueAt
  }

  /** The longest sleep that the flow may still begin, in milliseconds. */
  get longestSleepMs(): number {
    const { sleepMs = Infinity } = this.#input.waiting ?? {}
    return Math.min(sleepMs, this.#leftMs, LATEST_DUE_AT - this.now)
  }

  /** How long it is until the carrier gives the flow up. */
  get #leftMs(): number {
    const { endsAt = Infinity } = this.#input.waiting ?? {}
    return Math.max(0, endsAt - this.now)
  }

  /** Fires when it is due: at once if it is due already. */
  add(key: string, wait: PendingWait): void {
    const isDue = wait.dueAt <= this.now
    if (isDue && !this.#mustLook(wait)) return wait.fire()
    const { observed } = this.#input
    this.#pending.set(key, observed === undefined ? wait : this.#observed(observed, key, wait))
    if (isDue) void this.#look()
    else this.#arm()
  }

  /** True if this time has passed, and the carrier knows all that came until then. */
  isOver(dueAt: number): boolean {
    return dueAt <= this.now && !this.#mustLook({ dueAt, recorded: true })
  }

  /** The call has settled. */
  settled(key: string): void {
    this.#stopWaiting(key)
    const { dueAt, event } = this.#carried.get(key) ?? {}
    // A later pass has the token again, which may be part of a question.
    if (event !== undefined && dueAt !== undefined) this.#carried.set(key, { dueAt, event: { token: event.token } })
    else this.#carried.delete(key)
  }

  dropScope(prefix: string): void {
    for (const key of [...this.#carried.keys(), ...this.#pending.keys()]) {
      if (!key.startsWith(prefix)) continue
      this.#carried.delete(key)
      this.#stopWaiting(key)
    }
  }

  /** Fires what was due before this time, such as the receipt of an answer. Default: everything that is due. */
  fireDue(before = this.now + 1): void {
    const due = [...this.#pending].filter(([, { dueAt }]) => dueAt < before)
    for (const [key] of due) this.#pending.delete(key)
    for (const [, { fire }] of due.toSorted(([, one], [, other]) => one.dueAt - other.dueAt)) fire()
  }

  /** The earliest due time that the pass waits for. */
  get nextDueAt(): number | undefined {
    let next: number | undefined
    for (const { dueAt } of this.#pending.values()) if (next === undefined || dueAt < next) next = dueAt
    return next
  }

  /** True if the pass may end although it waits. `hasOpen` is true if a question is open. */
  mayEnd(hasOpen: boolean): boolean {
    const { nextDueAt } = this
    if (nextDueAt === undefined) return hasOpen
    for (const { holds } of this.#pending.values()) if (holds) return false
    const { journalWriter } = this.#input
    // Without a writer, a question reaches the client only when the pass ends.
    if (hasOpen && journalWriter === undefined) return true
    return this.releases(nextDueAt)
  }

  /** True if the pass ends rather than waits until then: a short wait too, if less than half of its time limit would be left after it. */
  releases(dueAt: number): boolean {
    const { waiting, limits } = this.#input
    if (waiting === undefined || waiting.releaseFromMs === Infinity) return false
    const ms = dueAt - this.now
    return ms >= waiting.releaseFromMs || this.#host.leftMs - ms < limits.passMs / 2
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    if (this.#input.observed !== undefined) {
      for (const { observation } of this.#pending.values()) observation?.end({ outcome: 'released' })
    }
    this.#pending.clear()
  }

  /** Nothing waits for this any more: the call has settled without it, or the scope around it has. */
  #stopWaiting(key: string): void {
    this.#pending.get(key)?.observation?.end({ outcome: 'over' })
    this.#pending.delete(key)
  }

  /** A question that is still open after a wrong answer waits on: for observers, that is the same wait. */
  #observed(observed: FlowObserver, key: string, wait: PendingWait): PendingWait {
    const before = this.#pending.get(key)?.observation
    const observation = before ?? observed.wait({ for: 'time', keys: [key], dueAt: wait.dueAt })
    const fire = (): void => {
      observation.end({ outcome: 'over' })
      wait.fire()
    }
    return { ...wait, fire, observation }
  }

  #mustLook({ dueAt, recorded }: Pick<PendingWait, 'dueAt' | 'recorded'>): boolean {
    const { knownAt = Infinity } = this.#input.journalWriter ?? {}
    return recorded && knownAt < dueAt
  }

  /** Has the carrier look for what came, and then fires what was due. */
  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    const { now } = this
    try {
      await this.#input.journalWriter?.refresh?.()
    } catch (error) {
      return void this.#host.fail(error)
    }
    this.#isLooking = false
    this.fireDue(now + 1)
    this.#arm()
  }

  #arm(): void {
    const { nextDueAt } = this
    if (nextDueAt === undefined || (this.#timer !== undefined && this.#timer.dueAt <= nextDueAt)) return
    this.#timer?.cancel()
    const { scheduler = defaultScheduler } = this.#input
    const wake = (): void => {
      this.#timer = undefined
      const { now } = this
      for (const wait of this.#pending.values()) if (wait.dueAt <= now && this.#mustLook(wait)) return void this.#look()
      this.fireDue()
      this.#arm()
    }
    const ms = Math.min(Math.max(nextDueAt - this.now, 0), MAX_TIMER_MS)
    this.#timer = { dueAt: nextDueAt, cancel: scheduler.after(ms, wake) }
  }
}
