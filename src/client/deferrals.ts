// Rounds that ask nothing, because the server wants to be called again: how long to wait before each, and when to give up.
import { backoff } from '../protocol/backoff.ts'
import { isObject } from '../protocol/json.ts'
import { ProtocolError } from '../protocol/errors.ts'
import { DEFERRED_VERSION, META_DEFERRED } from '../protocol/revisions/2026-07-28.ts'
import { ClientError, tooManyRounds } from './errors.ts'

/** Why a round was deferred. `version`: the instance that answered has another version of the tool. */
export type DeferralReason = 'load' | 'version'

const MAX_DEFERRALS = 100
/** If one instance in three has the right version, one call in 25 000 misses it as often as this. */
const MAX_OF_VERSION = 25

const LOAD = { firstMs: 20, maxMs: 1_000 }
/** With jitter, because all clients of a fleet meet a new version at the same time. */
const VERSION = { firstMs: 100, factor: 1.5, maxMs: 1_500, jitter: [0.5, 1] } as const

export class Deferrals {
  /** Names the call in errors. */
  readonly #what: string
  #total = 0
  #inRow = 0
  #ofVersionInRow = 0

  constructor(what: string) {
    this.#what = what
  }

  /** The wait before the next round. 0 if the last one was not deferred. */
  get waitMs(): number {
    if (this.#ofVersionInRow > 0) return backoff(this.#ofVersionInRow, VERSION)
    return this.#inRow > 0 ? backoff(this.#inRow, LOAD) : 0
  }

  /** Throws `TOO_MANY_ROUNDS` or `VERSION_CHANGED` if that was once too often. */
  count(reason: DeferralReason, cause?: Error): void {
    this.#total += 1
    this.#inRow += 1
    if (reason === 'load') this.#ofVersionInRow = 0
    else this.#ofVersionInRow += 1
    if (this.#ofVersionInRow > MAX_OF_VERSION) {
      throw new ClientError(
        'VERSION_CHANGED',
        `${this.#what}: no instance of the server has the version of the tool that this call began with, in ${this.#ofVersionInRow} tries. Pass error.pending to client.resume() later, or start the call again.`,
        cause === undefined ? {} : { cause },
      )
    }
    if (this.#total > MAX_DEFERRALS) {
      throw tooManyRounds(
        `${this.#what}: the server deferred the call ${this.#total} times, and the limit is ${MAX_DEFERRALS}.`,
      )
    }
  }

  /** The server has asked something, so the call makes progress. */
  reset(): void {
    this.#inRow = 0
    this.#ofVersionInRow = 0
  }
}

/** Reads the untrusted `_meta` of a deferred round. */
export function deferralReason(meta: unknown): DeferralReason {
  return isObject(meta) && meta[META_DEFERRED] === DEFERRED_VERSION ? 'version' : 'load'
}

/** True if the server has used up its deferrals for a call whose version it does not have. Nothing of the round has run. */
export function isVersionChanged(error: unknown): error is ProtocolError {
  return error instanceof ProtocolError && isObject(error.data) && error.data['code'] === 'VERSION_CHANGED'
}
