// What a session with an older server is held over: a child process, or HTTP with streams of events both ways.
import type { RequestId } from '../../protocol/messages.ts'
import type { OutgoingRequest, ReceiveMessage, ResponseCallbacks } from '../transports/transport.ts'
import { ClientError } from '../errors.ts'

export interface Channel {
  /** For each request one response or failure comes back. What it gives cancels the request, and tells the server so. */
  send(request: OutgoingRequest, callbacks: ResponseCallbacks): () => void
  /** Sends what has no response. Fails where that has certainly not arrived. `isCarried` is worth more tries. */
  notify(text: string, isCarried?: boolean): Promise<void>
  /** A session has begun, in this revision. */
  useRevision(revision: string): void
  /** Listens for what belongs to no call. Gives whether the server can tell of it. */
  listen(): Promise<boolean>
  /** Bounded in time. */
  close(): Promise<void>
}

export interface ChannelEvents {
  readonly receive: ReceiveMessage
  /** Calls back once we have said what the server has left a request to us for. Gives `false` where it has not. */
  readonly whenAnswered: (requestId: RequestId, answered: () => void) => boolean
  /** The server knows nothing of the session any more. */
  readonly sessionLost: () => void
  /** Something that belongs to no call may not have arrived. */
  readonly eventsMissed: () => void
}

/** Refused before anything was done. */
export function sessionGone(): ClientError {
  return new ClientError('LOST', 'The response was lost: the server has ended the session.', { status: 404 })
}

export function isSessionGone(error: unknown): boolean {
  return error instanceof ClientError && error.code === 'LOST' && error.status === 404
}
