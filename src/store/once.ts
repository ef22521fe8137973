// Single use: of many callers that try the same thing, one does it, and the others get its result.
import type { Backoff } from '../protocol/backoff.ts'
import { backoff } from '../protocol/backoff.ts'

/**
 * Remembers which keys were claimed, and the result of each. Share one across a fleet.
 *
 * 1. A claim is a lease: it expires after `leaseMs` unless its holder renews it, so that the claim of a dead process ends.
 * 2. At most one caller holds a key. Each claim has a fence that no other claim of the key ever has.
 * 3. `renew`, `settle` and `release` do nothing under a fence that is not the current one, or once the key is settled.
 */
export interface OnceStore {
  /** Claims the key. If it is held or settled, returns the note that its claim left, and the record of a settled key. */
  claim(key: string, note: string, leaseMs: number): OnceClaim | Promise<OnceClaim>
  /** Extends the claim to `leaseMs` from now. Returns `false` if the claim is lost. */
  renew(key: string, fence: string, leaseMs: number): boolean | Promise<boolean>
  /** Stores the record for later callers, for `keepMs`. Returns `false` if the claim is lost. */
  settle(key: string, fence: string, record: string, keepMs: number): boolean | Promise<boolean>
  /** Frees the key, as if it had never been claimed. */
  release(key: string, fence: string): void | Promise<void>
  /**
   * How many bytes the keys take that begin with this owner and a slash, with their notes and records. A store without it has no limit
   * for the records of one caller.
   */
  bytes?(owner: string): number | Promise<number>
}

/** What a store answers to a claim: the caller has the key, another caller has it, or the key was used and this is its record. */
export type OnceClaim =
  /** The caller holds the key now, under this fence. */
  | { kind: 'yours'; fence: string }
  /** Another caller holds the key. */
  | { kind: 'held'; note: string }
  /** The key was used. */
  | { kind: 'settled'; note: string; record: string }

export interface OnceOptions {
  /** Identifies this try: the same try again has the same note. */
  note: string
  /** How long the record is stored. */
  keepMs: number
  /** True when nobody waits for this try any more: it then stops waiting for another holder, and does not start. */
  gaveUp: () => boolean
}

/** The record of the try that was made, or `refused` if that was a try with another note. */
export type OnceOutcome = { record: string } | 'refused'

const LEASE_MS = 30_000
const WAIT: Backoff = { firstMs: 20, maxMs: 500 }

/**
 * Runs `run` if this caller is the first to use the key. `run` returns the record. If it returns `undefined` or throws, the key is
 * free again. Returns `undefined` if nothing was recorded.
 */
export async function useOnce(
  store: OnceStore,
  key: string,
  options: OnceOptions,
  run: () => Promise<string | undefined>,
): Promise<OnceOutcome | undefined> {
  for (let tries = 1; !options.gaveUp(); tries += 1) {
    const claim = await store.claim(key, options.note, LEASE_MS)
    if (claim.kind === 'yours') return runClaimed(store, key, claim.fence, options, run)
    if (claim.note !== options.note) return 'refused'
    if (claim.kind === 'settled') return { record: claim.record }
    await new Promise((resolve) => setTimeout(resolve, backoff(tries, WAIT)))
  }
  return undefined
}

async function runClaimed(
  store: OnceStore,
  key: string,
  fence: string,
  { keepMs, gaveUp }: OnceOptions,
  run: () => Promise<string | undefined>,
): Promise<OnceOutcome | undefined> {
  const renew = (): unknown => store.renew(key, fence, LEASE_MS)
  // Unreferenced: the work under the claim keeps the process alive, not its renewal.
  const renewal = setInterval(() => void ignoreFailure(renew), LEASE_MS / 3).unref()
  let record: string | undefined
  try {
    record = gaveUp() ? undefined : await run()
    if (record === undefined) return undefined
    // If the claim was lost in the meantime, the work is done all the same, and this is its result.
    await store.settle(key, fence, record, keepMs)
    return { record }
  } finally {
    clearInterval(renewal)
    if (record === undefined) await ignoreFailure(() => store.release(key, fence))
  }
}

/** For renewing and releasing. If the store fails, the claim expires with its lease. */
async function ignoreFailure(run: () => unknown): Promise<void> {
  try {
    await run()
  } catch {}
}
