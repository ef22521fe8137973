// What goes wrong in the observers of an app or a client. It is logged, and changes nothing else.
import { callSafely } from './call-safely.ts'
import type { Logger } from './logger.ts'

export class ObserverLog {
  readonly #logger: Logger
  readonly #mistakes = new Set<string>()

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** Calls a method of an observer, such as `observers[0].step`. Returns `undefined` if it throws, or returns null or a promise. */
  begin<T>(where: string, call: () => T): NonNullable<T> | undefined {
    const begun = this.safely(call)
    if (!(begun instanceof Promise)) return begun ?? undefined
    this.mistake(`${where}: must not be async. It returned a promise, which is ignored. Return the result itself.`)
    return undefined
  }

  /** Calls a function of an observer. Returns `undefined` if it throws. */
  safely<T>(call: () => T): T | undefined {
    return callSafely(call, (error) => this.failed(error))
  }

  failed(error: unknown): void {
    this.#logger.error('An observer failed.', { error })
  }

  /** The same mistake may happen in every request, so it is logged once. */
  mistake(message: string): void {
    if (this.#mistakes.has(message)) return
    this.#mistakes.add(message)
    this.#logger.warn(message)
  }
}
