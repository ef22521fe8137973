// An app in the same process as a way to a server, through the same text that a wire would carry.
import { Cancel } from '../../protocol/cancel.ts'
import { parseMessage, readResponse } from './envelope.ts'
import type { ClientError } from '../errors.ts'
import { badResponse, lost, reasonOf } from '../errors.ts'
import type { Outgoing, Receive, Transport, Waiter } from './transport.ts'

/** An app, or whatever else takes messages as one does. */
export interface AppLike {
  dispatch(message: unknown, context: DispatchContext): Promise<{ readonly text: string } | undefined>
}

export interface DispatchContext {
  readonly cancel: Cancel
  readonly notify: (text: string) => unknown
}

export class MemoryTransport implements Transport {
  readonly isHttp = false
  readonly #app: AppLike
  readonly #receive: Receive

  constructor(app: AppLike, receive: Receive) {
    this.#app = app
    this.#receive = receive
  }

  send({ id, text }: Outgoing, waiter: Waiter): () => void {
    const cancel = new Cancel()
    const notify = (notification: string): boolean => {
      if (cancel.cancelled) return false
      this.#receive(parseMessage(notification), id)
      return true
    }
    void this.#serve(text, { cancel, notify }).then(
      (reply) => {
        if (!cancel.cancelled) settle(reply?.text, id, waiter)
      },
      (error: unknown) => {
        if (!cancel.cancelled) waiter.failed(lost(reasonOf(error), error))
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

function settle(text: string | undefined, id: number, waiter: Waiter): void {
  try {
    if (text === undefined) throw badResponse('there is none')
    waiter.answered(readResponse(parseMessage(text), id, text.length))
  } catch (error) {
    waiter.failed(error as ClientError)
  }
}
