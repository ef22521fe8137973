// What the parts of SEP-1685 share.
import type { AppServices } from '../../server/context.ts'
import type { Mailbox } from '../../store/mailbox.ts'
import type { EventIds } from './event-position.ts'
import type { CallStates } from './state.ts'

export interface CarriedHost {
  readonly app: AppServices
  readonly states: CallStates
  readonly eventIds: EventIds
  /** Stores what follows an answer until the client fetches it. */
  readonly mailbox: Mailbox
  /** How long the events of a resumed call are stored. */
  readonly eventsMs: number
  /** How long a question that was sent on a stream is stored. */
  readonly questionMs: number
}
