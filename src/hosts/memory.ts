// Calls an app in the same process, through the same JSON text that a network would carry.
import { Cancel } from '../protocol/cancel.ts'
import type { JSONRPCNotification, JSONRPCResponse } from '../protocol/messages.ts'
import type { App } from '../server/app.ts'

export interface SendOptions {
  /** The caller. Default: anonymous. */
  principal?: string
  /** Cancels the call. Default: nothing does. */
  signal?: AbortSignal
  /** Called with every notification before the response. Default: they are dropped. */
  onNotification?: (notification: JSONRPCNotification) => void
}

/** Sends one message to an app. Resolves to its response, or to `undefined` when there is none, as to a notification. */
export async function send(app: App, message: object, options: SendOptions = {}): Promise<JSONRPCResponse | undefined> {
  const { principal, signal, onNotification } = options
  const cancel = new Cancel()
  const abort = (): void => cancel.cancel()
  signal?.addEventListener('abort', abort, { once: true })
  if (signal?.aborted) abort()
  const notify = onNotification && ((text: string) => onNotification(JSON.parse(text) as JSONRPCNotification))
  try {
    const reply = await app.dispatch(JSON.parse(JSON.stringify(message)), { principal, cancel, notify })
    return reply && (JSON.parse(reply.text) as JSONRPCResponse)
  } finally {
    signal?.removeEventListener('abort', abort)
  }
}
