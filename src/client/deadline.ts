// How long a call may still wait for its server, and what ends it early. Only waiting counts: while the user thinks, the
// clock stands still.
import { ClientError } from './errors.ts'

/** Timers know no longer time. */
const LONGEST_TIMER = 2 ** 31 - 1

/** While somebody thinks. */
const LOOK_AGAIN_MS = 50

export class Deadline {
  readonly #what: string
  readonly #timeoutMs: number
  readonly #outer: AbortSignal | undefined
  #leftMs: number
  #stopped: Error | undefined
  /** Ends what is under way. */
  #interrupt: ((error: Error) => void) | undefined
  #controller: AbortController | undefined
  /** Questions that older servers have asked in the middle of the wait, and nobody has answered yet. */
  #held = 0
  #heldSince = 0
  /** Of the wait that is under way. */
  #heldMs = 0

  /** `what` is for people, such as `tools/call deploy`. */
  constructor(what: string, timeoutMs: number, signal: AbortSignal | undefined) {
    this.#what = what
    this.#timeoutMs = timeoutMs
    this.#leftMs = timeoutMs
    this.#outer = signal
    if (signal === undefined) return
    if (signal.aborted) this.#abort()
    else signal.addEventListener('abort', this.#abort)
  }

  /** Aborted when the call ends before it is done. Made when somebody looks at it. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#stopped !== undefined) this.#controller.abort(this.#stopped)
    }
    return this.#controller.signal
  }

  /** Whether all of its time is used up. */
  get isExpired(): boolean {
    return this.#leftMs <= 0
  }

  /** Waits for the server. `begin` gives what cancels it. */
  wait<T>(begin: (resolve: (value: T) => void, reject: (error: Error) => void) => () => void): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#stopped !== undefined) return reject(this.#stopped)
      if (this.#leftMs <= 0) return reject(this.#timeout())
      const since = performance.now()
      this.#heldMs = 0
      this.#heldSince = since
      let isOver = false
      let timer: NodeJS.Timeout | undefined
      const over = (): void => {
        isOver = true
        if (timer !== undefined) clearTimeout(timer)
        this.#interrupt = undefined
        this.#leftMs -= this.#waited(since)
      }
      const cancel = begin(
        (value) => {
          over()
          resolve(value)
        },
        (error) => {
          over()
          reject(error)
        },
      )
      // Something that settles at once is possible.
      if (isOver) return
      this.#interrupt = (error) => {
        over()
        cancel()
        reject(error)
      }
      // So is a caller who changes their mind while it begins.
      if (this.#stopped !== undefined) return this.#interrupt(this.#stopped)
      if (this.#leftMs > LONGEST_TIMER) return
      const expire = (): void => {
        const leftMs = this.#leftMs - this.#waited(since)
        if (this.#held === 0 && leftMs <= 0) this.#interrupt?.(this.#timeout())
        else timer = setTimeout(expire, Math.ceil(Math.max(leftMs, this.#held === 0 ? 0 : LOOK_AGAIN_MS)))
      }
      timer = setTimeout(expire, Math.ceil(this.#leftMs))
    })
  }

  /** Stops the clock in the middle of a wait. Gives what lets it go on, to be called once. */
  pauseClock(): () => void {
    if (this.#held === 0) this.#heldSince = performance.now()
    this.#held += 1
    return () => {
      this.#held -= 1
      if (this.#held === 0) this.#heldMs += performance.now() - this.#heldSince
    }
  }

  #waited(since: number): number {
    const now = performance.now()
    return now - since - this.#heldMs - (this.#held > 0 ? now - this.#heldSince : 0)
  }

  /** Waits before the next try, which counts as waiting for the server. */
  sleep(ms: number): Promise<void> {
    return this.wait((resolve) => {
      const timer = setTimeout(() => resolve(undefined), ms)
      return () => clearTimeout(timer)
    })
  }

  /** Waits for somebody else than the server, which does not count. */
  waitForUser<T>(thinking: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      // Handled in any case: it may fail long after the call has ended.
      thinking.then(
        (value) => {
          this.#interrupt = undefined
          resolve(value)
        },
        (error: unknown) => {
          this.#interrupt = undefined
          reject(error)
        },
      )
      if (this.#stopped === undefined) this.#interrupt = reject
      else reject(this.#stopped)
    })
  }

  /** Ends the call now, whatever it is doing. */
  abort(error: Error): void {
    if (this.#stopped !== undefined) return
    this.#stopped = error
    this.#outer?.removeEventListener('abort', this.#abort)
    this.#controller?.abort(error)
    const interrupt = this.#interrupt
    this.#interrupt = undefined
    interrupt?.(error)
  }

  /** The call is done: lets go of the caller's signal. */
  release(): void {
    this.#outer?.removeEventListener('abort', this.#abort)
  }

  readonly #abort = (): void => {
    const cause: unknown = this.#outer?.reason
    this.abort(new ClientError('ABORTED', `${this.#what} was aborted.`, { cause }))
  }

  #timeout(): ClientError {
    return new ClientError(
      'TIMEOUT',
      `${this.#what} has waited ${this.#timeoutMs} ms for its server (timeoutMs). It may or may not have happened.`,
    )
  }
}
