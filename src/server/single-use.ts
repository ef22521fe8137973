// What a round is bound to, and rounds that are used once: a repeat, because the response was lost, gets the same response.
import type { Caller } from '../flow/caller.ts'
import type { Answers } from '../flow/answering.ts'
import type { TargetName } from '../flow/failure-log.ts'
import type { Cancel } from '../protocol/cancel.ts'
import { INVALID_PARAMS, ProtocolError } from '../protocol/errors.ts'
import type { Logger } from '../protocol/logger.ts'
import { META_IDEMPOTENCY_KEY } from '../protocol/revisions/2026-07-28.ts'
import { canonical, digest } from '../seal/canonical.ts'
import type { Binding } from '../seal/envelope.ts'
import { InvalidState } from '../seal/errors.ts'
import type { OnceOptions, OnceOutcome, OnceStore } from '../store/once.ts'
import { useOnce } from '../store/once.ts'
import { Usages } from '../store/usage.ts'
import type { Limits } from './limits.ts'
import { recordProblem } from './limits.ts'

/** What is used once. */
export type SingleUse = 'requestState' | 'idempotency key'

export interface UsedRound {
  readonly what: SingleUse
  readonly host: {
    readonly logger: Logger
    readonly seal: { readonly lifetimeMs: number }
    /** How much the records of each caller take, if the store can tell. */
    readonly recordUsages: Usages | undefined
  }
  readonly target: TargetName
  readonly request: {
    readonly answers: Answers | undefined
    readonly cancel: Cancel | undefined
    readonly caller: Caller | undefined
  }
}

/** The first use wins. The same round again, with the same answers, gets the same response. Any other use is refused. */
export async function useRound(
  store: OnceStore,
  key: string,
  { what, host, target, request }: UsedRound,
  run: () => Promise<string | undefined>,
): Promise<string | undefined> {
  const { answers = {}, cancel, caller } = request
  const options = {
    note: digest(canonicalOf(answers, 'inputResponses')),
    keepMs: host.seal.lifetimeMs,
    gaveUp: () => cancel?.cancelled ?? false,
  }
  const used = await useCounted({ store, usages: host.recordUsages, principal: caller?.principal }, key, options, run)
  if (used !== 'refused') return used?.record
  const reason = 'it was already used with other answers'
  const article = what === 'requestState' ? 'A' : 'An'
  host.logger.warn(`${article} ${what} was refused.`, { reason, method: target.method, target: target.target })
  if (what === 'requestState') throw new InvalidState(reason)
  throw new ProtocolError(INVALID_PARAMS, `Invalid params: ${META_IDEMPOTENCY_KEY}: ${reason}`)
}

/** Who uses a key, and where the record of it counts. */
export interface RecordOwner {
  readonly store: OnceStore
  readonly usages: Usages | undefined
  readonly principal: string | undefined
}

/** Uses a key once. Its record counts for the caller. */
export function useCounted(
  { store, usages, principal }: RecordOwner,
  key: string,
  options: OnceOptions,
  run: () => Promise<string | undefined>,
): Promise<OnceOutcome | undefined> {
  const owner = principal === undefined ? '' : digest(principal)
  return useOnce(store, `${owner}/${key}`, options, () => runCounted(usages, owner, run))
}

/** `undefined` if the store cannot tell how much each caller uses. */
export function recordUsages(store: OnceStore, limits: Limits): Usages | undefined {
  if (store.bytes === undefined) return undefined
  return new Usages(
    async (owner) => ({ open: 0, bytes: (await store.bytes?.(owner)) ?? 0 }),
    recordProblem(limits),
    Date.now,
  )
}

/** What a record takes beside the response: its key, its note, and what the store adds. */
const RECORD_BYTES = 256

/** A caller who has too many records is refused before anything is done. */
async function runCounted(
  usages: Usages | undefined,
  owner: string,
  run: () => Promise<string | undefined>,
): Promise<string | undefined> {
  const wanted = { tasks: 0, bytes: RECORD_BYTES } as const
  await usages?.add(owner, wanted)
  try {
    const record = await run()
    if (record !== undefined) usages?.grow(owner, Buffer.byteLength(record))
    return record
  } finally {
    usages?.written(owner, wanted)
  }
}

const LONGEST_PLAIN = 64

export function bindingOf(
  { method, target }: TargetName,
  { args, caller }: { readonly args: Record<string, unknown>; readonly caller: Caller | undefined },
): Binding {
  const text = canonicalOf(args, 'arguments')
  // Short arguments are bound as they are, without a digest. No digest starts with a brace, so the two cannot be confused.
  return {
    method,
    target,
    argumentsDigest: text.length > LONGEST_PLAIN ? digest(text) : text,
    principal: caller?.principal,
  }
}

function canonicalOf(value: unknown, what: string): string {
  try {
    return canonical(value)
  } catch (cause) {
    // A number that JSON can write and JavaScript cannot represent, such as 1e999.
    throw new ProtocolError(INVALID_PARAMS, `Invalid ${what}: ${cause instanceof Error ? cause.message : ''}`)
  }
}
