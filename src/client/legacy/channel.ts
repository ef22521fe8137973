// What a session with an older server is held over: a child process, or HTTP with streams of events both ways.
import type { RequestId } from '../../protocol/messages.ts'
import type { Outgoing, Receive, Waiter } from '../transports/transport.ts'
import { ClientError } from '../errors.ts'

export interface Channel {
  /** For each request one response or failure comes back. What it gives cancels the request, and tells the server so. */
  send(request: Outgoing, waiter: Waiter): () => void
  /** Sends what has no response. Fails where that has certainly not arrived. `isCarried` is worth more tries. */
  say(text: string, isCarried?: boolean): Promise<void>
  /** A session has begun, in this revision. */
  begin(revision: string): void
  /** Listens for what belongs to no call. Gives whether the server can tell of it. */
  listening(): Promise<boolean>
  /** Bounded in time. */
  close(): Promise<void>
}

export interface ChannelEvents {
  readonly receive: Receive
  /** Calls back once we have said what the server has left a request to us for. Gives `false` where it has not. */
  readonly onceAnswered: (requestId: RequestId, answered: () => void) => boolean
  /** The server knows nothing of the session any more. */
  readonly gone: () => void
  /** Something that belongs to no call may not have arrived. */
  readonly missed: () => void
}

/** Refused before anything was done. */
export function sessionGone(): ClientError {
  return new ClientError('LOST', 'The response was lost: the server has ended the session.', { status: 404 })
}

export function isSessionGone(error: unknown): boolean {
  return error instanceof ClientError && error.code === 'LOST' && error.status === 404
}
