// Single use: of many that try the same thing, one does it, and the others get what it came to.
import type { Backoff } from '../protocol/backoff.ts'
import { backoff } from '../protocol/backoff.ts'

/**
 * Remembers what has been taken up and what it came to. Share one across a fleet.
 * A claim is for a while, so that the claim of a process that died lapses; whoever holds it renews it.
 */
export interface OnceStore {
  /** Takes the key, unless somebody holds it or has settled it: then gives the note that was left with it. */
  claim(key: string, note: string, leaseMs: number): OnceClaim | Promise<OnceClaim>
  /** `false` when the claim has lapsed and is another's. */
  renew(key: string, fence: string, leaseMs: number): boolean | Promise<boolean>
  /** Keeps the record for everybody that comes later. `false` when the claim is another's by now. */
  settle(key: string, fence: string, record: string, keepMs: number): boolean | Promise<boolean>
  /** Gives the key back as if it had never been taken. */
  release(key: string, fence: string): void | Promise<void>
}

export type OnceClaim =
  /** `fence` tells this claim from any other of the same key. */
  { kind: 'yours'; fence: string } | { kind: 'held'; note: string } | { kind: 'settled'; note: string; record: string }

export interface OnceOptions {
  /** What this try is, so that the same try again is told from another one. */
  note: string
  keepMs: number
  /** Nobody waits for this try any longer: it neither goes on waiting for another holder nor begins. */
  gaveUp: () => boolean
}

/** What the one that did it made of it; `refused` to a try that is not the same. */
export type Used = { record: string } | 'refused'

const LEASE_MS = 30_000
const WAITS: Backoff = { firstMs: 20, maxMs: 500 }

/** `run` gives the record, or nothing where the try came to nothing and the key is free again, as it is when it throws. */
export async function useOnce(
  store: OnceStore,
  key: string,
  options: OnceOptions,
  run: () => Promise<string | undefined>,
): Promise<Used | undefined> {
  for (let tries = 1; !options.gaveUp(); tries += 1) {
    const claim = await store.claim(key, options.note, LEASE_MS)
    if (claim.kind === 'yours') return hold(store, key, claim.fence, options, run)
    if (claim.note !== options.note) return 'refused'
    if (claim.kind === 'settled') return { record: claim.record }
    await new Promise((resolve) => setTimeout(resolve, backoff(tries, WAITS)))
  }
  return undefined
}

async function hold(
  store: OnceStore,
  key: string,
  fence: string,
  { keepMs, gaveUp }: OnceOptions,
  run: () => Promise<string | undefined>,
): Promise<Used | undefined> {
  const renew = (): unknown => store.renew(key, fence, LEASE_MS)
  // Does not keep the process alive: what is done under the claim does that.
  const renewal = setInterval(() => void quietly(renew), LEASE_MS / 3).unref()
  let record: string | undefined
  try {
    record = gaveUp() ? undefined : await run()
    if (record === undefined) return undefined
    // Where the claim lapsed meanwhile, the work is done all the same, and this is what it came to.
    await store.settle(key, fence, record, keepMs)
    return { record }
  } finally {
    clearInterval(renewal)
    if (record === undefined) await quietly(() => store.release(key, fence))
  }
}

/** A store that fails here does no harm: the claim lapses with its lease. */
async function quietly(run: () => unknown): Promise<void> {
  try {
    await run()
  } catch {}
}
