// The sessions that an instance knows something about. A session that it has forgotten still works: its id holds what it needs.
import { Session } from './session.ts'
import type { SessionClaims } from './session-id.ts'

const MAX_SESSIONS = 10_000

export class Sessions {
  readonly #max: number
  /** In the order of their last use. */
  readonly #all = new Map<string, Session>()

  constructor(max = MAX_SESSIONS) {
    this.#max = max
  }

  get size(): number {
    return this.#all.size
  }

  values(): Iterable<Session> {
    return this.#all.values()
  }

  /** Returns `undefined` if too many sessions are busy. The caller calls `settle` when it is done. */
  of(claims: SessionClaims): Session | undefined {
    const known = this.#all.get(claims.id)
    if (known === undefined && this.#all.size >= this.#max && !this.#forgetOne()) return undefined
    const session = known ?? new Session(claims)
    this.#all.delete(claims.id)
    this.#all.set(claims.id, session)
    return session
  }

  /** Forgets the session unless it holds something that its id does not. */
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
