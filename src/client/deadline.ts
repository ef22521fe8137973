// The time that a call may wait for its server, and what ends it early. The time in which the user answers is not counted.
import { ClientError } from './errors.ts'

/** A timer cannot be set for longer. */
export const MAX_TIMER_MS = 2 ** 31 - 1

/** How often the time is checked while the clock is paused. */
const RECHECK_MS = 50

export class Deadline {
  readonly #what: string
  readonly #timeoutMs: number
  readonly #outer: AbortSignal | undefined
  #leftMs: number
  #aborted: Error | undefined
  /** Rejects the wait that is in progress. */
  #interrupt: ((error: Error) => void) | undefined
  #controller: AbortController | undefined
  /** How many users of `pauseClock` have not resumed it. Legacy servers ask during a wait. */
  #pauses = 0
  #pausedSince = 0
  /** How long the clock was paused during the current wait. */
  #pausedMs = 0

  /** `what` names the call in errors, such as `tools/call deploy`. */
  constructor(what: string, timeoutMs: number, signal: AbortSignal | undefined) {
    this.#what = what
    this.#timeoutMs = timeoutMs
    this.#leftMs = timeoutMs
    this.#outer = signal
    if (signal === undefined) return
    if (signal.aborted) this.#onAbort()
    else signal.addEventListener('abort', this.#onAbort)
  }

  /** Aborted when the call is aborted. Created on first use. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted)
    }
    return this.#controller.signal
  }

  /** The time that was left before the current wait. */
  get leftMs(): number {
    return this.#leftMs
  }

  /** True if no time is left. */
  get isExpired(): boolean {
    return this.#leftMs <= 0
  }

  /** Waits for the server. `start` returns a function that cancels the wait. */
  wait<T>(start: (resolve: (value: T) => void, reject: (error: Error) => void) => () => void): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#aborted !== undefined) return reject(this.#aborted)
      if (this.#leftMs <= 0) return reject(this.#timeout())
      const since = performance.now()
      this.#pausedMs = 0
      this.#pausedSince = since
      let isSettled = false
      let timer: NodeJS.Timeout | undefined
      const settle = (): void => {
        isSettled = true
        if (timer !== undefined) clearTimeout(timer)
        this.#interrupt = undefined
        this.#leftMs -= this.#waited(since)
      }
      const cancel = start(
        (value) => {
          settle()
          resolve(value)
        },
        (error) => {
          settle()
          reject(error)
        },
      )
      // `start` may have settled it already.
      if (isSettled) return
      this.#interrupt = (error) => {
        settle()
        cancel()
        reject(error)
      }
      // `start` may have aborted the call.
      if (this.#aborted !== undefined) return this.#interrupt(this.#aborted)
      if (this.#leftMs > MAX_TIMER_MS) return
      const expire = (): void => {
        const leftMs = this.#leftMs - this.#waited(since)
        if (this.#pauses === 0 && leftMs <= 0) this.#interrupt?.(this.#timeout())
        else timer = setTimeout(expire, Math.ceil(Math.max(leftMs, this.#pauses === 0 ? 0 : RECHECK_MS)))
      }
      timer = setTimeout(expire, Math.ceil(this.#leftMs))
    })
  }

  /** Pauses the clock during a wait. Returns a function that resumes it, to be called once. */
  pauseClock(): () => void {
    if (this.#pauses === 0) this.#pausedSince = performance.now()
    this.#pauses += 1
    return () => {
      this.#pauses -= 1
      if (this.#pauses === 0) this.#pausedMs += performance.now() - this.#pausedSince
    }
  }

  #waited(since: number): number {
    const now = performance.now()
    return now - since - this.#pausedMs - (this.#pauses > 0 ? now - this.#pausedSince : 0)
  }

  /** Waits before a retry. It counts as waiting for the server. */
  sleep(ms: number): Promise<void> {
    return this.wait((resolve) => {
      const timer = setTimeout(() => resolve(undefined), ms)
      return () => clearTimeout(timer)
    })
  }

  /** Waits for the user. It does not count. */
  waitForUser<T>(answering: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      // Always handled, because it may fail long after the call has ended.
      answering.then(
        (value) => {
          this.#interrupt = undefined
          resolve(value)
        },
        (error: unknown) => {
          this.#interrupt = undefined
          reject(error)
        },
      )
      if (this.#aborted === undefined) this.#interrupt = reject
      else reject(this.#aborted)
    })
  }

  /** Ends the call now, and rejects what it waits for. */
  abort(error: Error): void {
    if (this.#aborted !== undefined) return
    this.#aborted = error
    this.#outer?.removeEventListener('abort', this.#onAbort)
    this.#controller?.abort(error)
    const interrupt = this.#interrupt
    this.#interrupt = undefined
    interrupt?.(error)
  }

  /** The call is done: removes the listener from the caller's signal. */
  release(): void {
    this.#outer?.removeEventListener('abort', this.#onAbort)
  }

  readonly #onAbort = (): void => {
    const cause: unknown = this.#outer?.reason
    this.abort(new ClientError('ABORTED', `${this.#what} was aborted.`, { cause }))
  }

  #timeout(): ClientError {
    return new ClientError(
      'TIMEOUT',
      `${this.#what}: the server did not respond within ${this.#timeoutMs} ms (timeoutMs). The request may or may not have taken effect.`,
    )
  }
}
