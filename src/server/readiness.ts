// Whether this instance should get requests. A load balancer asks that often, so the answer is kept for a moment.
import type { Logger } from '../protocol/logger.ts'

/** What an orchestrator or a load balancer wants to know. `reason` says nothing that the public must not read. */
export type Readiness = { readonly ready: true } | { readonly ready: false; readonly reason: string }

/** Options of `app.readiness()`. */
export interface ReadinessOptions {
  /** How late the event loop may be, in milliseconds. Default 1 000. */
  maxLagMs?: number
}

const DEFAULT_MAX_LAG_MS = 1_000
/** How long the store has to answer. Kubernetes gives a probe one second by default. */
const STORE_MS = 800
/** How long an answer is kept: any number of probes cost the store two reads in a second. */
const KEPT_MS = 500

/** The two things that are measured. */
interface Measured {
  readonly lagMs: number
  readonly store: 'reached' | 'silent' | 'failed'
}

export class ReadinessCheck {
  readonly #reachStore: () => Promise<void> | undefined
  readonly #logger: Logger
  #measuring: Promise<Measured> | undefined
  /** A read that the store has not answered yet. There is never a second one beside it. */
  #reading: Promise<void> | undefined
  #leaving = false
  #storeFailed = false

  constructor(reachStore: () => Promise<void> | undefined, logger: Logger) {
    this.#reachStore = reachStore
    this.#logger = logger
  }

  /** From now on the instance is not ready. */
  leave(): void {
    this.#leaving = true
  }

  /** Never rejects. */
  async read({ maxLagMs = DEFAULT_MAX_LAG_MS }: ReadinessOptions = {}): Promise<Readiness> {
    if (this.#leaving) return LEAVING
    this.#measuring ??= this.#measure()
    const { lagMs, store } = await this.#measuring
    // The signal may have come meanwhile.
    if (this.#leaving) return LEAVING
    if (store === 'silent') return { ready: false, reason: `the store did not answer within ${STORE_MS} ms` }
    if (store === 'failed') return { ready: false, reason: 'the store cannot be reached' }
    if (lagMs > maxLagMs) return { ready: false, reason: `the event loop is more than ${maxLagMs} ms late` }
    return { ready: true }
  }

  async #measure(): Promise<Measured> {
    const [lagMs, store] = await Promise.all([eventLoopLag(), this.#askStore()])
    setTimeout(() => (this.#measuring = undefined), KEPT_MS).unref()
    return { lagMs, store }
  }

  async #askStore(): Promise<Measured['store']> {
    this.#reading ??= this.#reachStore()?.finally(() => (this.#reading = undefined))
    if (this.#reading === undefined) return 'reached'
    let timer: NodeJS.Timeout | undefined
    const silent = new Promise<'silent'>((resolve) => (timer = setTimeout(resolve, STORE_MS, 'silent')))
    try {
      const store = await Promise.race([this.#reading.then(() => 'reached' as const), silent])
      this.#log(store === 'silent', { waitedMs: STORE_MS })
      return store
    } catch (error) {
      this.#log(true, { error })
      return 'failed'
    } finally {
      clearTimeout(timer)
    }
  }

  /** Once for each time that the store is lost. */
  #log(failed: boolean, details: Record<string, unknown>): void {
    if (failed && !this.#storeFailed) this.#logger.error('Not ready: the store did not answer.', details)
    this.#storeFailed = failed
  }
}

const LEAVING: Readiness = { ready: false, reason: 'the instance is shutting down' }

/** How long one whole turn of the event loop takes. */
async function eventLoopLag(): Promise<number> {
  await nextTurn()
  const began = performance.now()
  await nextTurn()
  return performance.now() - began
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0))
}
