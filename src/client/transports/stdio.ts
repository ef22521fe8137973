// The stdio transport: a child process, one JSON message per line. It is started on demand, and again after it exited.
import { backoff } from '../../protocol/backoff.ts'
import { isObject } from '../../protocol/json.ts'
import type { Logger } from '../../protocol/logger.ts'
import type { RequestId } from '../../protocol/messages.ts'
import { reasonOf, shown } from '../../protocol/text.ts'
import { Child, type ServerCommand } from './child.ts'
import { type ClientError, lost, notStarted, tooLarge, unreachable } from '../errors.ts'
import { isResponse, parseMessage, readResponse } from './message.ts'
import type { OutgoingRequest, ReceiveMessage, Transport, ResponseCallbacks } from './transport.ts'

const RESTART = { firstMs: 100, maxMs: 5_000 }

export class StdioTransport implements Transport {
  readonly usesParamHeaders = false
  readonly canLoseRequests = false
  readonly #command: ServerCommand
  readonly #maxBytes: number
  readonly #logger: Logger
  #receive: ReceiveMessage
  /** Set by a legacy session, which ends with the process. */
  #onExit: (() => void) | undefined
  readonly #inFlight = new Map<RequestId, ResponseCallbacks>()
  /** The requests in flight that wait for the process to start, with their texts. */
  readonly #unsent = new Map<RequestId, string>()
  /** The last requests that were cancelled. The server may still answer them. */
  readonly #cancelled = new Set<RequestId>()
  #child: Child | undefined
  #restart: NodeJS.Timeout | undefined
  /** Exits since the last response. */
  #exits = 0
  #exitReason: string | undefined
  #isClosed = false

  constructor(command: ServerCommand, maxBytes: number, logger: Logger, receive: ReceiveMessage) {
    this.#command = command
    this.#maxBytes = maxBytes
    this.#logger = logger
    this.#receive = receive
  }

  /** Why the process exited last, with the end of its stderr. Undefined if it has answered since. */
  get exitReason(): string | undefined {
    return this.#exitReason
  }

  send({ id, method, text }: OutgoingRequest, callbacks: ResponseCallbacks): () => void {
    this.#inFlight.set(id, callbacks)
    // A process that does not accept input is about to exit, and the request waits for the next one.
    if (!this.#child?.write(text)) {
      const belongsToSession = this.#onExit !== undefined && method !== 'initialize'
      if (this.#child !== undefined && belongsToSession) return this.#refuse(id, callbacks)
      this.#unsent.set(id, text)
      if (this.#child === undefined) this.#startLater()
    }
    return () => this.#cancel(id)
  }

  /** Sends a message that has no response. Returns false if the process cannot take it. */
  write(text: string): boolean {
    if (this.#child === undefined || this.#child.backlog > this.#maxBytes) return false
    return this.#child.write(text)
  }

  /** For a legacy session: it receives the messages from now on, and a request is never sent to a later process. */
  bindSession(receive: ReceiveMessage, onExit: () => void): void {
    this.#receive = receive
    this.#onExit = onExit
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#restart)
    this.#inFlight.clear()
    this.#unsent.clear()
    await this.#child?.close()
  }

  #refuse(id: number, callbacks: ResponseCallbacks): () => void {
    this.#inFlight.delete(id)
    callbacks.reject(unreachable('its process is about to exit'))
    return () => {}
  }

  #cancel(id: number): void {
    if (!this.#inFlight.delete(id) || this.#unsent.delete(id) || this.#isClosed) return
    this.#cancelled.add(id)
    const [oldest] = this.#cancelled
    if (this.#cancelled.size > MAX_CANCELLED && oldest !== undefined) this.#cancelled.delete(oldest)
    this.#child?.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`)
  }

  #startLater(): void {
    if (this.#restart !== undefined || this.#isClosed) return
    const delay = this.#exits === 0 ? 0 : backoff(this.#exits, RESTART)
    this.#restart = setTimeout(() => {
      this.#restart = undefined
      this.#start()
    }, delay)
  }

  #start(): void {
    const unsent = [...this.#unsent.values()]
    this.#unsent.clear()
    try {
      const child = new Child(this.#command, this.#maxBytes, {
        line: (line) => this.#line(line),
        tooLong: () => {
          // The line may never end, and later messages would become a part of it.
          void this.#child?.close()
          this.#failSent(() => tooLarge(this.#maxBytes))
        },
        exited: (reason, wasStarted) => this.#exited(reason, wasStarted),
      })
      this.#child = child
      for (const text of unsent) child.write(text)
    } catch (error) {
      // spawn throws if the command is not a valid string.
      this.#exited(reasonOf(error), false)
    }
  }

  #exited(reason: string, wasStarted: boolean): void {
    this.#child = undefined
    this.#exits += 1
    this.#exitReason = reason
    // Unsent requests start a new session with the next process, and that session has not ended.
    if (this.#unsent.size === 0) this.#onExit?.()
    this.#failSent(() => (wasStarted ? lost(reason) : notStarted(reason)))
    if (this.#unsent.size > 0) this.#startLater()
  }

  #failSent(error: () => ClientError): void {
    for (const [id, callbacks] of this.#inFlight) {
      if (this.#unsent.has(id)) continue
      this.#inFlight.delete(id)
      callbacks.reject(error())
    }
  }

  #line(line: string): void {
    // Checked first: parsing every line of a flood of log output would cost much more.
    if (!line.startsWith('{')) return this.#notMessage(line)
    let message: Record<string, unknown>
    try {
      message = parseMessage(line)
    } catch {
      return this.#notMessage(line)
    }
    if (isResponse(message)) this.#settle(message, line.length)
    else this.#receive(message)
  }

  #notMessage(line: string): void {
    this.#logger.warn('The server wrote a line to stdout that is not a JSON-RPC message.', {
      line: line.slice(0, MAX_LOGGED_LENGTH),
    })
  }

  #settle(message: Record<string, unknown>, length: number): void {
    const id = message['id'] as RequestId
    const callbacks = this.#inFlight.get(id)
    if (callbacks === undefined) {
      const { error } = message
      if (this.#cancelled.delete(id) || error === undefined) return
      const said = isObject(error) ? error['message'] : undefined
      this.#logger.warn('The server sent an error that answers no open request.', { message: shown(said) })
      return
    }
    this.#inFlight.delete(id)
    this.#exits = 0
    this.#exitReason = undefined
    try {
      callbacks.resolve(readResponse(message, id, length, callbacks.normalize))
    } catch (error) {
      callbacks.reject(error as ClientError)
    }
  }
}

const MAX_LOGGED_LENGTH = 200
const MAX_CANCELLED = 100
