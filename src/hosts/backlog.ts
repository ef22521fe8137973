// Requests that were read and wait to be served, because the event loop has much to do.
//
// In one turn of the event loop Node reads every socket that is ready, and accepts a single connection. If all requests of a turn were
// served at once, a long turn would keep everybody else waiting in the system's queues, where nobody can refuse them. So a turn serves
// requests for a short time only. The others wait here, first come, first served. A request that would wait for too long is not taken,
// and one that has waited for too long is not served: so all that are served are served in time.
import { AsyncResource } from 'node:async_hooks'
import { scheduler } from '../flow/scheduler.ts'

/** Serves the request, or refuses it because it has waited for too long. */
type Serve = (isLate: boolean) => void

interface Waiting {
  readonly serve: Serve
  /** The async context of the caller. `AsyncResource.bind` costs a hundred times as much in Node 20. */
  readonly context: AsyncResource
  readonly since: number
  readonly maxWaitMs: number
  next: Waiting | undefined
}

/** How long a turn of the event loop serves requests. */
const SLICE_MS = 5
/** For so long turns that accept a connection serve nothing: more connections may wait, and each needs a turn of its own. */
const ACCEPTING_MS = 2
/** So many requests are served in a turn without looking at the clock. While fewer wait, none is refused: one slow handler is no overload. */
const FEW = 16
/** How much the last slice counts in the mean time of a request. */
const WEIGHT = 0.2

export class Backlog {
  #first: Waiting | undefined
  #last: Waiting | undefined
  #length = 0
  /** How long the loop takes for each request that is served from here, with all that it does beside. */
  #meanMs = 0
  /** Those of this turn. While there are few, also those of earlier turns. */
  #servedInTurn = 0
  #turnBegan = 0
  #servedInSlice = 0
  #sliceBegan = 0
  #acceptsUntil = 0
  #hasAccepted = false

  /** How long a further request would wait, in milliseconds, or 0 while few wait. */
  get waitMs(): number {
    return this.#length < FEW ? 0 : this.#length * this.#meanMs
  }

  /** True if a request that is served now would keep the others of this turn waiting for too long. Call it once for each request. */
  mustWait(): boolean {
    if (this.#first !== undefined) return true
    if (this.#servedInTurn === FEW) return performance.now() - this.#turnBegan > SLICE_MS
    this.#servedInTurn += 1
    if (this.#servedInTurn < FEW) return false
    this.#turnBegan = performance.now()
    setImmediate(this.#endTurn)
    return false
  }

  /** Serves it when its turn has come, in the async context of the caller. */
  add(serve: Serve, maxWaitMs: number): void {
    const since = performance.now()
    const waiting: Waiting = { serve, context: new AsyncResource('RallyWaiting'), since, maxWaitMs, next: undefined }
    this.#length += 1
    if (this.#last === undefined) {
      this.#first = waiting
      this.#sliceBegan = since
      this.#servedInSlice = 0
      setImmediate(this.#beginSlice)
    } else {
      this.#last.next = waiting
    }
    this.#last = waiting
  }

  /** A connection was accepted in this turn. */
  accepted(): void {
    this.#hasAccepted = true
  }

  readonly #endTurn = (): void => {
    this.#servedInTurn = 0
  }

  readonly #beginSlice = (): void => {
    const now = performance.now()
    const accepts = this.#hasAccepted && now < this.#acceptsUntil
    this.#hasAccepted = false
    if (accepts) return void setImmediate(this.#beginSlice)
    if (this.#servedInSlice > 0) {
      this.#meanMs += ((now - this.#sliceBegan) / this.#servedInSlice - this.#meanMs) * WEIGHT
    }
    this.#sliceBegan = now
    this.#servedInSlice = 0
    this.#serveNext(now)
  }

  #serveNext(now: number): void {
    const first = this.#first
    if (first === undefined) return
    this.#first = first.next
    if (first.next === undefined) this.#last = undefined
    this.#length -= 1
    const isLate = this.#length >= FEW && now - first.since > first.maxWaitMs
    if (!isLate) this.#servedInSlice += 1
    // Before it is served: what it throws must not stop the others.
    scheduler.drained(this.#goOn)
    first.context.runInAsyncScope(first.serve, undefined, isLate)
  }

  /** The handler has run as far as it can without waiting for anything. */
  readonly #goOn = (): void => {
    if (this.#first === undefined) return
    const now = performance.now()
    if (now < this.#sliceBegan + SLICE_MS) return this.#serveNext(now)
    this.#acceptsUntil = now + ACCEPTING_MS
    setImmediate(this.#beginSlice)
  }
}
