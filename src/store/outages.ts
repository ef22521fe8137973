// What the failures of a store are to its callers: an error that says to try again later.
//
// However many calls fail, the log gets the first failure with its stack, then a count for each window, and a line at the end.
import { RallyError } from '../protocol/errors.ts'
import type { Logger } from '../protocol/logger.ts'
import { Unavailable } from '../protocol/unavailable.ts'
import type { Mailbox } from './mailbox.ts'
import { MemoryOnceStore } from './memory/once.ts'
import type { OnceStore } from './once.ts'
import type { TaskStore } from './tasks.ts'

const WINDOW_MS = 30_000
const RETRY_AFTER_MS = 1_000

/** The store has failed. `cause` is its error, which is in the log already. */
export class StoreUnavailable extends Unavailable {
  constructor(cause: unknown, isUnprocessed = false) {
    const advice = { retryAfterMs: RETRY_AFTER_MS, isUnprocessed }
    super("The server's store is not available. Try again in a second.", advice, { cause })
  }

  /** True if the store could not be reached, or refused before it began. */
  get wroteNothing(): boolean {
    return this.cause instanceof Error && 'code' in this.cause && NOTHING_WRITTEN.has(this.cause.code)
  }

  /** The same for a request with which nothing was done. */
  unprocessed(): StoreUnavailable {
    return new StoreUnavailable(this.cause, true)
  }
}

export class StoreOutages {
  readonly #logger: Logger
  #timer: NodeJS.Timeout | undefined
  #since = 0
  #total = 0
  #inWindow = 0
  #last: unknown

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** The same store, whose failures are `StoreUnavailable`. */
  tasks(store: TaskStore): TaskStore {
    return {
      ...(store.createAndClaim && {
        createAndClaim: (task, leaseMs, worker) =>
          this.#guard(() => store.createAndClaim?.(task, leaseMs, worker) ?? store.create(task)),
      }),
      ...(store.claimMany && {
        claimMany: (request, limit) => this.#guard(() => store.claimMany?.(request, limit) ?? []),
      }),
      ...(store.changeAndClaim && {
        changeAndClaim: (id, precondition, change, leaseMs, worker) =>
          this.#guard(
            () =>
              store.changeAndClaim?.(id, precondition, change, leaseMs, worker) ??
              store.change(id, precondition, change),
          ),
      }),
      ...(store.find && { find: (query) => this.#guard(() => store.find?.(query) ?? { tasks: [] }) }),
      ...(store.inspect && { inspect: (id) => this.#guard(() => store.inspect?.(id)) }),
      ...(store.remove && { remove: (ids) => this.#guard(() => store.remove?.(ids) ?? 0) }),
      create: (task) => this.#guard(() => store.create(task)),
      read: (id) => this.#guard(() => store.read(id)),
      versions: (ids) => this.#guard(() => store.versions(ids)),
      list: (owner, limit, after) => this.#guard(() => store.list(owner, limit, after)),
      claim: (request) => this.#guard(() => store.claim(request)),
      renew: (leases, leaseMs) => this.#guard(() => store.renew(leases, leaseMs)),
      append: (lease, entries) => this.#guard(() => store.append(lease, entries)),
      change: (id, precondition, change) => this.#guard(() => store.change(id, precondition, change)),
      usage: (owner) => this.#guard(() => store.usage(owner)),
      sweep: () => this.#guard(() => store.sweep()),
      watch: (listener) => this.#guardNow(() => store.watch(listener)),
    }
  }

  once(store: OnceStore): OnceStore {
    // It cannot fail.
    if (store instanceof MemoryOnceStore) return store
    return {
      claim: (key, note, leaseMs) => this.#guard(() => store.claim(key, note, leaseMs)),
      renew: (key, fence, leaseMs) => this.#guard(() => store.renew(key, fence, leaseMs)),
      settle: (key, fence, record, keepMs) => this.#guard(() => store.settle(key, fence, record, keepMs)),
      release: (key, fence) => this.#guard(() => store.release(key, fence)),
      ...(store.bytes && { bytes: (owner) => this.#guard(() => store.bytes?.(owner) ?? 0) }),
    }
  }

  mailbox(mailbox: Mailbox): Mailbox {
    return {
      leave: (...event) => this.#guard(() => mailbox.leave(...event)),
      after: (channel, number) => this.#guard(() => mailbox.after(channel, number)),
      watch: (channel, arrived) => this.#guardNow(() => mailbox.watch(channel, arrived)),
    }
  }

  async #guard<T>(call: () => T | Promise<T>): Promise<T> {
    try {
      return await call()
    } catch (error) {
      throw this.#failed(error)
    }
  }

  #guardNow<T>(call: () => T): T {
    try {
      return call()
    } catch (error) {
      throw this.#failed(error)
    }
  }

  #failed(error: unknown): unknown {
    if (error instanceof RallyError && CALLERS_MISTAKES.has(error.code)) return error
    this.#total += 1
    this.#inWindow += 1
    this.#last = error
    if (this.#timer === undefined) {
      this.#since = Date.now()
      this.#inWindow = 0
      this.#logger.error('The store failed. Until it works again, requests that need it are told to try again later.', {
        error,
      })
      this.#timer = setInterval(() => this.#endWindow(), WINDOW_MS).unref()
    }
    return new StoreUnavailable(error)
  }

  #endWindow(): void {
    const failures = this.#inWindow
    this.#inWindow = 0
    if (failures > 0) {
      const reason = this.#last instanceof Error ? this.#last.message : String(this.#last)
      this.#logger.error(`The store failed ${failures} times in the last ${WINDOW_MS / 1_000} s.`, { failures, reason })
      return
    }
    clearInterval(this.#timer)
    this.#timer = undefined
    const details = { failures: this.#total, since: new Date(this.#since).toISOString() }
    this.#logger.warn(`The store has not failed for ${WINDOW_MS / 1_000} s.`, details)
    this.#total = 0
    this.#last = undefined
  }
}

/** Logs an error that something in the background met, except if it is the store's: that one is in the log already. */
export function logUnlessOutage(logger: Logger, message: string, details: { readonly error: unknown }): void {
  if (!(details.error instanceof StoreUnavailable)) logger.error(message, { ...details })
}

/** The store works: it refused what it was given. */
const CALLERS_MISTAKES: ReadonlySet<string | number> = new Set([
  'STORE_LIMIT',
  'STORE_JOURNAL',
  'MAILBOX_FULL',
  'TASK_CURSOR',
])

const NOTHING_WRITTEN: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  // PostgreSQL starts or stops, or has no connection left.
  '57P03',
  '53300',
  'STORE_BUSY',
  'STORE_CLOSED',
  'STORE_DRIVER_MISSING',
  'STORE_FILE_CHANGED',
  'STORE_PATH',
  'STORE_POOLER',
  'STORE_SCHEMA',
])
