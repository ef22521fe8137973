// The sessions that an instance remembers something of. All that a client cannot do without is in the id it sends.
import { Session } from './session.ts'
import type { SessionClaims } from './session-id.ts'

const MOST_SESSIONS = 10_000

export class Sessions {
  readonly #most: number
  /** Those used last come last. */
  readonly #all = new Map<string, Session>()

  constructor(most = MOST_SESSIONS) {
    this.#most = most
  }

  get size(): number {
    return this.#all.size
  }

  values(): Iterable<Session> {
    return this.#all.values()
  }

  /** `undefined` where there are too many that cannot be forgotten. Whoever is done with it says so by `settle`. */
  of(claims: SessionClaims): Session | undefined {
    const known = this.#all.get(claims.id)
    if (known === undefined && this.#all.size >= this.#most && !this.#forgetOne()) return undefined
    const session = known ?? new Session(claims)
    this.#all.delete(claims.id)
    this.#all.set(claims.id, session)
    return session
  }

  settle(session: Session): void {
    if (!session.isWorthKeeping) this.#all.delete(session.id)
  }

  #forgetOne(): boolean {
    for (const session of this.#all.values()) {
      if (!session.isBusy) return this.#all.delete(session.id)
    }
    return false
  }
}
