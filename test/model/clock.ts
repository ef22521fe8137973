// Virtual time. One event happens at a time, and everything that it causes without waiting happens before the next one.
//
// While the clock is installed, the timers, `Date.now`, `performance.now` and `Math.random` of this process are the model's. Each event
// has an owner: the instance that it happens in. What an event starts belongs to the same owner. So a kill can stop all timers of one
// instance, a stall can delay them, and each instance has its own wall clock.
import type { Random } from '../../src/testing/random.ts'

/** Where an event happens. */
export interface Place {
  /** Its wall clock is wrong by this much. */
  readonly skewMs: number
  /** False once it was killed: nothing happens in it any more. */
  readonly alive: boolean
  /** Nothing happens in it before this time. */
  readonly stalledUntil: number
  /** Replaces its wall clock. For planted bugs. */
  readonly wallClock?: (() => number) | undefined
}

/** The event that is being handled: where it happens, and what it belongs to, such as a request. */
export interface Scene<Cause> {
  readonly place: Place | undefined
  readonly cause: Cause | undefined
}

interface Event<Cause> extends Scene<Cause> {
  at: number
  order: number
  run: () => void
  /** For an interval: the time between two runs. */
  readonly every: number | undefined
  cancelled: boolean
}

/** Any time in the past would do. */
const START = 1_700_000_000_000

const real = { setImmediate, setTimeout, setInterval, clearTimeout, clearInterval }
const realDateNow = Date.now
const realPerformanceNow = performance.now.bind(performance)
const realRandom = Math.random

export class Clock<Cause> {
  now = START
  scene: Scene<Cause> = { place: undefined, cause: undefined }
  /** How many events have happened. */
  happened = 0
  readonly #random: Random
  #queue: Event<Cause>[] = []
  #immediates: (() => void)[] = []
  #order = 0

  constructor(random: Random) {
    this.#random = random
  }

  /** Milliseconds since the start of the history. */
  get elapsed(): number {
    return this.now - START
  }

  /** The wall clock of a place. */
  wallClock(place: Place | undefined): number {
    return place === undefined ? this.now : (place.wallClock?.() ?? this.now + place.skewMs)
  }

  /** Runs it later, in another scene or in this one. */
  after(ms: number, run: () => void, scene: Scene<Cause> = this.scene): void {
    this.#add(ms, run, undefined, scene)
  }

  /** Drops everything that was to happen in a place that was killed. */
  forget(place: Place): void {
    this.#queue = this.#queue.filter((event) => event.place !== place)
  }

  /** Time passes in which nothing happens, as in a machine that is suspended. */
  skip(ms: number): void {
    this.now += ms
  }

  /** Lets time pass until nothing is left to happen, `isOver` returns true, or the time is up. Returns false for the last. */
  async run(untilElapsed: number, isOver: () => boolean): Promise<boolean> {
    const restore = this.#install()
    try {
      await this.#settle()
      for (;;) {
        if (isOver()) return true
        const event = this.#queue.pop()
        if (event === undefined) return true
        if (event.at - START > untilElapsed) {
          this.#insert(event)
          return false
        }
        this.now = Math.max(this.now, event.at)
        if (event.cancelled || event.place?.alive === false) continue
        const stalledUntil = event.place?.stalledUntil ?? 0
        if (stalledUntil > this.now) {
          event.at = stalledUntil
          this.#insert(event)
          continue
        }
        await this.#handle(event)
      }
    } finally {
      restore()
    }
  }

  async #handle(event: Event<Cause>): Promise<void> {
    this.happened += 1
    const { place, cause, every } = event
    this.scene = { place, cause }
    if (every !== undefined) {
      event.at = this.now + Math.ceil(every)
      event.order = this.#order += 1
      this.#insert(event)
    }
    event.run()
    await this.#settle()
    this.scene = { place: undefined, cause: undefined }
  }

  /** Waits until everything that needs no time has happened. */
  async #settle(): Promise<void> {
    for (;;) {
      await new Promise<void>((resolve) => void real.setImmediate(resolve))
      if (this.#immediates.length === 0) return
      for (const run of this.#immediates.splice(0)) run()
    }
  }

  #add(ms: number, run: () => void, every: number | undefined, { place, cause }: Scene<Cause>): Event<Cause> {
    // Wall clocks count whole milliseconds.
    const at = this.now + Math.max(0, Math.ceil(ms))
    const event: Event<Cause> = { at, order: (this.#order += 1), run, every, place, cause, cancelled: false }
    this.#insert(event)
    return event
  }

  /** The queue ends with the next event. */
  #insert(event: Event<Cause>): void {
    let low = 0
    let high = this.#queue.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const other = this.#queue[middle]
      if (other !== undefined && comesAfter(other, event)) low = middle + 1
      else high = middle
    }
    this.#queue.splice(low, 0, event)
  }

  #install(): () => void {
    const timer = (run: (...args: unknown[]) => void, ms: unknown, args: unknown[], repeats: boolean): object => {
      const delay = Math.max(1, Number(ms) || 0)
      const event = this.#add(delay, () => run(...args), repeats ? delay : undefined, this.scene)
      const handle = { event, ref: () => handle, unref: () => handle, hasRef: () => true, refresh: () => handle }
      return handle
    }
    const clear = (handle: unknown): void => {
      if (typeof handle !== 'object' || handle === null || !('event' in handle)) return
      const event = handle.event as Event<Cause>
      event.cancelled = true
      const at = this.#queue.indexOf(event)
      if (at >= 0) this.#queue.splice(at, 1)
    }
    const fakes = {
      setTimeout: (run: () => void, ms?: unknown, ...args: unknown[]) => timer(run, ms, args, false),
      setInterval: (run: () => void, ms?: unknown, ...args: unknown[]) => timer(run, ms, args, true),
      clearTimeout: clear,
      clearInterval: clear,
      setImmediate: (run: (...args: unknown[]) => void, ...args: unknown[]) => {
        this.#immediates.push(() => run(...args))
        return {}
      },
    }
    Object.assign(globalThis, fakes)
    Date.now = () => this.wallClock(this.scene.place)
    performance.now = () => this.now - START
    Math.random = () => this.#random.next()
    return () => {
      const { setTimeout, setInterval, clearTimeout, clearInterval, setImmediate } = real
      Object.assign(globalThis, { setTimeout, setInterval, clearTimeout, clearInterval, setImmediate })
      Date.now = realDateNow
      performance.now = realPerformanceNow
      Math.random = realRandom
    }
  }
}

function comesAfter(one: { at: number; order: number }, other: { at: number; order: number }): boolean {
  return one.at > other.at || (one.at === other.at && one.order > other.order)
}
