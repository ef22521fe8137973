// A transport to an app in the same process. Messages pass as text, exactly as over a network.
import { Cancel } from '../../protocol/cancel.ts'
import { reasonOf } from '../../protocol/text.ts'
import { parseMessage, readResponse } from './message.ts'
import { badResponse, type ClientError, lost } from '../errors.ts'
import type { OutgoingRequest, ReceiveMessage, ResponseCallbacks, Transport } from './transport.ts'

/** An app, or any other object that takes messages as an app does. */
export interface AppLike {
  /** Serves one message. Returns the text of the response, or `undefined` for a notification. */
  dispatch(message: unknown, context: DispatchContext): Promise<{ readonly text: string } | undefined>
}

export interface DispatchContext {
  readonly cancel: Cancel
  readonly notify: (text: string) => unknown
}

export class MemoryTransport implements Transport {
  readonly usesParamHeaders = false
  readonly canLoseRequests = false
  readonly #app: AppLike
  readonly #receive: ReceiveMessage

  constructor(app: AppLike, receive: ReceiveMessage) {
    this.#app = app
    this.#receive = receive
  }

  send({ id, text }: OutgoingRequest, callbacks: ResponseCallbacks): () => void {
    const cancel = new Cancel()
    const notify = (notification: string): boolean => {
      if (cancel.cancelled) return false
      this.#receive(parseMessage(notification), id)
      return true
    }
    void this.#dispatch(text, { cancel, notify }).then(
      (reply) => {
        if (!cancel.cancelled) settle(reply?.text, id, callbacks)
      },
      (error: unknown) => {
        if (!cancel.cancelled) callbacks.reject(lost(reasonOf(error), error))
      },
    )
    return () => cancel.cancel()
  }

  async close(): Promise<void> {}

  /** Async, so that an error that the app throws synchronously is a rejection too. */
  async #dispatch(text: string, context: DispatchContext): Promise<{ readonly text: string } | undefined> {
    return this.#app.dispatch(JSON.parse(text), context)
  }
}

function settle(text: string | undefined, id: number, callbacks: ResponseCallbacks): void {
  try {
    if (text === undefined) throw badResponse('it is missing')
    callbacks.resolve(readResponse(parseMessage(text), id, text.length))
  } catch (error) {
    callbacks.reject(error as ClientError)
  }
}
