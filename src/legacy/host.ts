// What all parts of legacy/ share.
import type { Pass } from '../flow/pass.ts'
import type { Underway } from '../flow/underway.ts'
import type { AppServices } from '../server/context.ts'
import type { SharedLimit } from '../protocol/shared-limit.ts'
import type { Asks, TaskWaits } from './asks.ts'
import type { Session } from './session.ts'

export interface LegacyHost {
  /** The app, except that results do not name the server: older revisions do that in `initialize`. */
  readonly app: AppServices
  readonly underway: Underway<Pass>
  readonly asks: Asks
  readonly waits: TaskWaits
  /** The bytes of the URIs that sessions have subscribed to. */
  readonly subscribed: SharedLimit<Session>
  /** How long a client may take to answer the questions of one round that have no deadline. */
  readonly askMs: number
  /** How long a whole call may take. */
  readonly callMs: number
  /** The draft revisions that are served beside the released ones. */
  readonly optedIn: readonly string[]
  /** Forgets the session unless it holds something that its id does not. */
  readonly settle: (session: Session) => void
}

/** Where the messages of one call go before its response. `send` and `notify` return false if the message was not sent. */
export interface Outlet {
  readonly overHttp?: boolean
  /** Why there is no stream to send on, if a limit is the reason. */
  readonly refusal?: string | undefined
  /** For messages that must not be lost. */
  send(text: string): boolean
  /** For messages that may be dropped when the reader is too far behind. */
  notify(text: string): boolean
  /** The call keeps this many bytes more until it ends. Returns the reason if there is no room for them. */
  keep?(bytes: number): string | undefined
  /** Opens the stream, if there is one, so that the client sees that its request is being served. */
  open?(): void
  /**
   * Calls the listener when no client can read the messages any more. Returns a function that stops it. A connection that ends cancels
   * its calls instead.
   */
  onLost?(listener: () => void): () => void
}
