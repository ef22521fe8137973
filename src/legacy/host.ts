// What the parts of this room share: the app's own, the limits, and what waits on this instance.
import type { Pass } from '../flow/pass.ts'
import type { Underway } from '../flow/underway.ts'
import type { DispatchHost } from '../server/context.ts'
import type { Asks } from './asks.ts'

export interface LegacyHost {
  /** As the app serves other messages, except that results do not name the server. */
  readonly app: DispatchHost
  readonly underway: Underway<Pass>
  readonly asks: Asks
  /** How long a client may take over the questions of one round. */
  readonly askMs: number
  /** How long a whole call may take. */
  readonly callMs: number
  /** The revisions that are spoken beside the released ones. */
  readonly optedIn: readonly string[]
}

/** Where the messages of one call go before its response. Both give `false` where it was not sent. */
export interface Outlet {
  readonly overHttp?: boolean
  /** What must not be lost. */
  send(text: string): boolean
  /** What may be, where the reader is too far behind. */
  notify(text: string): boolean
}
