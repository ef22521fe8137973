// A child process as a way to a server: one JSON message a line. It is started when it is needed, and again after it died.
import type { Logger } from '../../protocol/logger.ts'
import type { RequestId } from '../../protocol/messages.ts'
import { Child, type ServerCommand } from './child.ts'
import { isResponse, parseMessage, readResponse } from './message.ts'
import type { ClientError } from '../errors.ts'
import { lost, notStarted, tooLarge, unreachable } from '../errors.ts'
import { reasonOf } from '../../protocol/text.ts'
import type { OutgoingRequest, ReceiveMessage, Transport, ResponseCallbacks } from './transport.ts'

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 5_000

export class StdioTransport implements Transport {
  readonly usesParamHeaders = false
  readonly #command: ServerCommand
  readonly #maxBytes: number
  readonly #logger: Logger
  #receive: ReceiveMessage
  /** Given by a session, which ends with the process. */
  #whenGone: (() => void) | undefined
  readonly #waiting = new Map<RequestId, ResponseCallbacks>()
  /** Requests that wait for the process to be started. */
  readonly #unsent = new Map<RequestId, string>()
  #child: Child | undefined
  #restart: NodeJS.Timeout | undefined
  /** How often it has died without having answered anything. */
  #deaths = 0
  #isClosed = false

  constructor(command: ServerCommand, maxBytes: number, logger: Logger, receive: ReceiveMessage) {
    this.#command = command
    this.#maxBytes = maxBytes
    this.#logger = logger
    this.#receive = receive
  }

  send({ id, method, text }: OutgoingRequest, callbacks: ResponseCallbacks): () => void {
    this.#waiting.set(id, callbacks)
    // One that does not listen any more is about to go, and this waits for the next.
    if (!this.#child?.say(text)) {
      const isForThisOne = this.#whenGone !== undefined && method !== 'initialize'
      if (this.#child !== undefined && isForThisOne) return this.#refuse(id, callbacks)
      this.#unsent.set(id, text)
      if (this.#child === undefined) this.#startLater()
    }
    return () => this.#cancel(id)
  }

  /** Sends what has no response. Gives whether it could be said at all. */
  say(text: string): boolean {
    if (this.#child === undefined || this.#child.backlog > this.#maxBytes) return false
    return this.#child.say(text)
  }

  /** For a session: messages go elsewhere from now on, and requests are never sent to another process than they were made for. */
  takeOver(receive: ReceiveMessage, whenGone: () => void): void {
    this.#receive = receive
    this.#whenGone = whenGone
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#restart)
    this.#waiting.clear()
    this.#unsent.clear()
    await this.#child?.close()
  }

  #refuse(id: number, callbacks: ResponseCallbacks): () => void {
    this.#waiting.delete(id)
    callbacks.reject(unreachable('it is about to end'))
    return () => {}
  }

  #cancel(id: number): void {
    if (!this.#waiting.delete(id) || this.#unsent.delete(id) || this.#isClosed) return
    this.#child?.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`)
  }

  #startLater(): void {
    if (this.#restart !== undefined || this.#isClosed) return
    const pause = this.#deaths === 0 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** (this.#deaths - 1), LONGEST_PAUSE_MS)
    this.#restart = setTimeout(() => {
      this.#restart = undefined
      this.#start()
    }, pause)
  }

  #start(): void {
    const unsent = [...this.#unsent.values()]
    this.#unsent.clear()
    try {
      const child = new Child(this.#command, this.#maxBytes, {
        line: (line) => this.#line(line),
        tooLong: () => {
          // A line that long may have no end, and whatever is said next would be a part of it.
          void this.#child?.close()
          this.#failSent(() => tooLarge(this.#maxBytes))
        },
        gone: (how, wasStarted) => this.#gone(how, wasStarted),
      })
      this.#child = child
      for (const text of unsent) child.say(text)
    } catch (error) {
      // A command that nothing could be made of.
      this.#gone(reasonOf(error), false)
    }
  }

  #gone(how: string, wasStarted: boolean): void {
    this.#child = undefined
    this.#deaths += 1
    // One that has not begun yet has not ended either.
    if (this.#unsent.size === 0) this.#whenGone?.()
    this.#failSent(() => (wasStarted ? lost(how) : notStarted(how)))
    if (this.#unsent.size > 0) this.#startLater()
  }

  #failSent(error: () => ClientError): void {
    for (const [id, callbacks] of this.#waiting) {
      if (this.#unsent.has(id)) continue
      this.#waiting.delete(id)
      callbacks.reject(error())
    }
  }

  #line(line: string): void {
    // Chatter is told from messages by its first letter: a failure for each line of a flood would cost much more.
    if (!line.startsWith('{')) return this.#noMessage(line)
    let message: Record<string, unknown>
    try {
      message = parseMessage(line)
    } catch {
      return this.#noMessage(line)
    }
    if (isResponse(message)) this.#settle(message, line.length)
    else this.#receive(message)
  }

  #noMessage(line: string): void {
    this.#logger.warn('The server wrote a line to its standard output that is no message.', {
      line: line.slice(0, LONGEST_SHOWN),
    })
  }

  #settle(message: Record<string, unknown>, length: number): void {
    const id = message['id'] as RequestId
    const callbacks = this.#waiting.get(id)
    if (callbacks === undefined) {
      // As a rule to one that was cancelled a moment ago.
      const { error } = message
      if (error !== undefined) this.#logger.warn('The server sent an error that belongs to no request.', { error })
      return
    }
    this.#waiting.delete(id)
    this.#deaths = 0
    try {
      callbacks.resolve(readResponse(message, id, length, callbacks.normalize))
    } catch (error) {
      callbacks.reject(error as ClientError)
    }
  }
}

const LONGEST_SHOWN = 200
