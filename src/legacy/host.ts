// What the parts of this room share: the app's own, the limits, and what waits on this instance.
import type { Pass } from '../flow/pass.ts'
import type { Underway } from '../flow/underway.ts'
import type { AppServices } from '../server/context.ts'
import type { Mailbox } from '../store/mailbox.ts'
import type { Asks } from './asks.ts'
import type { Places } from './carried/event-position.ts'
import type { States } from './carried/state.ts'
import type { TaskWaits } from './task-waits.ts'

export interface LegacyHost {
  /** As the app serves other messages, except that results do not name the server. */
  readonly app: AppServices
  readonly underway: Underway<Pass>
  readonly asks: Asks
  readonly waits: TaskWaits
  /** How long a client may take over the questions of one round. */
  readonly askMs: number
  /** How long a whole call may take. */
  readonly callMs: number
  /** The revisions that are spoken beside the released ones. */
  readonly optedIn: readonly string[]
  /** What clients carry with a question, where they carry it. */
  readonly states: States
  readonly places: Places
  /** Where they find what comes after their answer. */
  readonly mailbox: Mailbox
  /** How long it is there, and how long a question is that went out on a stream. */
  readonly lettersMs: number
  readonly askedMs: number
}

/** Where the messages of one call go before its response. Both give `false` where it was not sent. */
export interface Outlet {
  readonly overHttp?: boolean
  /** What must not be lost. */
  send(text: string): boolean
  /** What may be, where the reader is too far behind. */
  notify(text: string): boolean
  /** Only where the client carries the call from one question to the next. */
  readonly parting?: Parting | undefined
  /** Begins the stream, where there is one, so that the client sees that its request is being served. */
  open?(): void
  /** One listener, called once nobody can read what is sent any more. A connection that ends cancels its calls instead. */
  onLost?(listener: (() => void) | undefined): void
}

/** How a question goes out that the client carries the whole call with. Nothing follows it here. */
export interface Parting {
  /** Where the client looks for what follows; on a connection, which stays, nothing. */
  readonly box: string | undefined
  /** How many have gone out before it in this call. */
  readonly leg: number
  /** Gives `false` where it was not sent. */
  ask(text: string): Promise<boolean>
}
