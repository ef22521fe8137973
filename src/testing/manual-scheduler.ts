// A scheduler that a test drives: nothing happens until the test says so.
import type { Io } from '../flow/io.ts'
import { startPass } from '../flow/io.ts'
import type { Outcome } from '../flow/carrier.ts'
import type { PassInput } from '../flow/carrier.ts'
import { Pass } from '../flow/pass.ts'
import type { Scheduler } from '../flow/scheduler.ts'

export class ManualScheduler implements Scheduler {
  readonly #drained: (() => void)[] = []
  readonly #turns: (() => void)[] = []
  readonly #sleepers: { ms: number; wake: () => void }[] = []

  drained = (run: () => void): void => void this.#drained.push(run)
  turn = (run: () => void): void => void this.#turns.push(run)
  sleep = (ms: number): Promise<void> => new Promise((wake) => void this.#sleepers.push({ ms, wake }))

  after = (ms: number, run: () => void): (() => void) => {
    const sleeper = { ms, wake: run }
    this.#sleepers.push(sleeper)
    return () => {
      const index = this.#sleepers.indexOf(sleeper)
      if (index >= 0) this.#sleepers.splice(index, 1)
    }
  }

  /** True if the engine waits for a turn. */
  get awaitsTurn(): boolean {
    return this.#turns.length > 0
  }

  /** Runs one settlement and what the handler does after it. Returns false if none was due. */
  async settleOne(): Promise<boolean> {
    await microtasks()
    const run = this.#drained.shift()
    run?.()
    await microtasks()
    return run !== undefined
  }

  /** Settles everything that needs no turn. */
  async settle(): Promise<void> {
    while (await this.settleOne());
  }

  /** Runs one turn. */
  async passTurn(): Promise<void> {
    await this.settle()
    this.#turns.shift()?.()
    await this.settle()
  }

  /** Ends the next sleep. Returns its length in milliseconds, or undefined if nothing sleeps. */
  async wake(): Promise<number | undefined> {
    await this.settle()
    const sleeper = this.#sleepers.shift()
    sleeper?.wake()
    await this.settle()
    return sleeper?.ms
  }
}

/** Waits for one real turn of the event loop, after which all microtasks that were due have run. */
export function microtasks(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}

/** A promise that the test settles. */
export interface Gate<T> {
  readonly promise: Promise<T>
  readonly open: (value: T) => void
  readonly fail: (error: unknown) => void
}

export function gate<T = void>(): Gate<T> {
  let open: Gate<T>['open'] = unset
  let fail: Gate<T>['fail'] = unset
  const promise = new Promise<T>((resolve, reject) => {
    open = resolve
    fail = reject
  })
  return { promise, open, fail }
}

function unset(): void {}

/** Runs one pass of a handler and returns its outcome. */
export function runPass(input: PassInput, handler: (io: Io) => unknown): Promise<Outcome> {
  return new Promise((finish) => startPass(new Pass(input, finish), handler))
}
