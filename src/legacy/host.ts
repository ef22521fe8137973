// What the parts of this room share: the app's own, the limits, and what waits on this instance.
import type { Pass } from '../flow/pass.ts'
import type { Underway } from '../flow/underway.ts'
import type { DispatchHost } from '../server/context.ts'
import type { Asks } from './asks.ts'
import type { TaskWaits } from './task-waits.ts'

export interface LegacyHost {
  /** As the app serves other messages, except that results do not name the server. */
  readonly app: DispatchHost
  readonly underway: Underway<Pass>
  readonly asks: Asks
  readonly waits: TaskWaits
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
  /** Begins the stream, where there is one, so that the client sees that its request is being served. */
  open?(): void
  /** One listener, called once nobody can read what is sent any more. A connection that ends cancels its calls instead. */
  onLost?(listener: (() => void) | undefined): void
}
