// An app in the same process as a way to a server, through the same text that a wire would carry.
import { Cancel } from '../../protocol/cancel.ts'
import { parseMessage, readResponse } from './message.ts'
import type { ClientError } from '../errors.ts'
import { badResponse, lost } from '../errors.ts'
import { reasonOf } from '../../protocol/text.ts'
import type { OutgoingRequest, ReceiveMessage, Transport, ResponseCallbacks } from './transport.ts'

/** An app, or whatever else takes messages as one does. */
export interface AppLike {
  dispatch(message: unknown, context: DispatchContext): Promise<{ readonly text: string } | undefined>
}

export interface DispatchContext {
  readonly cancel: Cancel
  readonly notify: (text: string) => unknown
}

export class MemoryTransport implements Transport {
  readonly usesParamHeaders = false
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
    void this.#serve(text, { cancel, notify }).then(
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

  /** Asynchronous whatever the app does, so that a failure is one in any case. */
  async #serve(text: string, context: DispatchContext): Promise<{ readonly text: string } | undefined> {
    return this.#app.dispatch(JSON.parse(text), context)
  }
}

function settle(text: string | undefined, id: number, callbacks: ResponseCallbacks): void {
  try {
    if (text === undefined) throw badResponse('there is none')
    callbacks.resolve(readResponse(parseMessage(text), id, text.length))
  } catch (error) {
    callbacks.reject(error as ClientError)
  }
}
