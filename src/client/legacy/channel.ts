// What a session with a legacy server runs over: a child process, or HTTP with event streams.
import type { RequestId } from '../../protocol/messages.ts'
import type { OutgoingRequest, ReceiveMessage, ResponseCallbacks } from '../transports/transport.ts'
import type { StdioTransport } from '../transports/stdio.ts'
import { ClientError, lost } from '../errors.ts'

export interface Channel {
  /** Settles each request exactly once. Returns a function that cancels the request and tells the server. */
  send(request: OutgoingRequest, callbacks: ResponseCallbacks): () => void
  /** Sends a message that has no response. Rejects if it did not arrive. With `isCarried` it is retried more often. */
  notify(text: string, isCarried?: boolean): Promise<void>
  /** A session has started in this revision. */
  useRevision(revision: string): void
  /** Opens the stream for messages outside of calls. Resolves to false if the server has none. */
  listen(): Promise<boolean>
  /** Takes a bounded time. */
  close(): Promise<void>
}

export interface ChannelEvents {
  readonly receive: ReceiveMessage
  /**
   * Calls `answered` once this client has answered every question whose state it carries for the request. Returns false,
   * and never calls it, if there is no such question.
   */
  readonly whenAnswered: (requestId: RequestId, answered: () => void) => boolean
  /** The server has ended the session. */
  readonly sessionLost: () => void
  /** Messages outside of calls may have been lost. */
  readonly eventsMissed: () => void
}

/** Over the process that was already probed. The session ends with the process. */
export function stdioChannel(transport: StdioTransport, events: ChannelEvents): Channel {
  transport.bindSession(events.receive, () => {
    events.sessionLost()
    events.eventsMissed()
  })
  return {
    send: (request, callbacks) => transport.send(request, callbacks),
    notify: async (text) => {
      if (!transport.write(text)) throw lost('the server does not read its input')
    },
    useRevision: () => {},
    listen: async () => true,
    close: () => transport.close(),
  }
}

/** The server refused the request before it did anything, because its session has ended. */
export function sessionLost(): ClientError {
  return new ClientError('LOST', 'The response was lost: the server has ended the session.', { status: 404 })
}

export function isSessionLost(error: unknown): boolean {
  return error instanceof ClientError && error.code === 'LOST' && error.status === 404
}

/** A timer for the server. It stands still while the user logs in, as do the clocks of the calls that wait for it. */
export class ServerTimer {
  readonly #start: () => NodeJS.Timeout
  #timer: NodeJS.Timeout | undefined

  constructor(ms: number, expire: () => void) {
    this.#start = () => setTimeout(expire, ms)
    this.#timer = this.#start()
  }

  /** Starts anew when the returned function is called. */
  pause(calls: Iterable<ResponseCallbacks> = []): () => void {
    clearTimeout(this.#timer)
    const clocks = Array.from(calls, ({ deadline }) => deadline?.pauseClock())
    return () => {
      for (const resume of clocks) resume?.()
      if (this.#timer !== undefined) this.#timer = this.#start()
    }
  }

  clear(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}
