// Access tokens that were verified of late: a signature costs a hundred times what finding it here does.
import { hash } from 'node:crypto'
import type { AuthenticatedCaller } from './authenticate.ts'

/** Most tokens that are remembered; the one not seen for longest goes first. */
const MOST = 1_000

export class VerifiedTokens {
  readonly #forMs: number
  /** By digest, so that no token stays in memory; the least recently seen first. */
  readonly #entries = new Map<string, { caller: AuthenticatedCaller; until: number }>()

  constructor(forMs: number) {
    this.#forMs = forMs
  }

  find(token: string): AuthenticatedCaller | undefined {
    if (this.#forMs === 0) return undefined
    const key = digestOf(token)
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    this.#entries.delete(key)
    if (Date.now() >= entry.until) return undefined
    this.#entries.set(key, entry)
    return entry.caller
  }

  /** Remembers what a token says until it expires, but no longer than the cache keeps anything. */
  remember(token: string, caller: AuthenticatedCaller, expiresAt: number): void {
    if (this.#forMs === 0) return
    this.#entries.set(digestOf(token), { caller, until: Math.min(expiresAt, Date.now() + this.#forMs) })
    if (this.#entries.size <= MOST) return
    const [oldest] = this.#entries.keys()
    if (oldest !== undefined) this.#entries.delete(oldest)
  }
}

function digestOf(token: string): string {
  return hash('sha256', token, 'base64url')
}
