// How long a call may still wait for its server, and what ends it early. Only waiting counts: while the user thinks, the
// clock stands still.
import { ClientError } from './errors.ts'

/** Timers know no longer time. */
const LONGEST_TIMER = 2 ** 31 - 1

export class Patience {
  readonly #what: string
  readonly #timeoutMs: number
  readonly #outer: AbortSignal | undefined
  #leftMs: number
  #stopped: Error | undefined
  /** Ends what is under way. */
  #interrupt: ((error: Error) => void) | undefined
  #controller: AbortController | undefined

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

  /** Waits for the server. `begin` gives what cancels it. */
  wait<T>(begin: (resolve: (value: T) => void, reject: (error: Error) => void) => () => void): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#stopped !== undefined) return reject(this.#stopped)
      if (this.#leftMs <= 0) return reject(this.#timeout())
      const since = performance.now()
      let isOver = false
      let timer: NodeJS.Timeout | undefined
      const over = (): void => {
        isOver = true
        if (timer !== undefined) clearTimeout(timer)
        this.#interrupt = undefined
        this.#leftMs -= performance.now() - since
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
      timer = setTimeout(() => this.#interrupt?.(this.#timeout()), Math.ceil(this.#leftMs))
    })
  }

  /** Waits before the next try, which counts as waiting for the server. */
  pause(ms: number): Promise<void> {
    return this.wait((resolve) => {
      const timer = setTimeout(() => resolve(undefined), ms)
      return () => clearTimeout(timer)
    })
  }

  /** Waits for somebody else than the server, which does not count. */
  think<T>(thinking: Promise<T>): Promise<T> {
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
  stop(error: Error): void {
    if (this.#stopped !== undefined) return
    this.#stopped = error
    this.#outer?.removeEventListener('abort', this.#abort)
    this.#controller?.abort(error)
    const interrupt = this.#interrupt
    this.#interrupt = undefined
    interrupt?.(error)
  }

  /** The call is done: lets go of the caller's signal. */
  done(): void {
    this.#outer?.removeEventListener('abort', this.#abort)
  }

  readonly #abort = (): void => {
    const cause: unknown = this.#outer?.reason
    this.stop(new ClientError('ABORTED', `${this.#what} was aborted.`, { cause }))
  }

  #timeout(): ClientError {
    return new ClientError(
      'TIMEOUT',
      `${this.#what} has waited ${this.#timeoutMs} ms for its server (timeoutMs). It may or may not have happened.`,
    )
  }
}
