// An app in the same process as its caller, through the same text that a wire would carry.
import { Cancel } from '../protocol/cancel.ts'
import type { JSONRPCNotification, JSONRPCResponse } from '../protocol/messages.ts'
import type { App } from '../server/app.ts'

export interface SendOptions {
  principal?: string
  signal?: AbortSignal
  onNotification?: (notification: JSONRPCNotification) => void
}

/** Sends one message to an app and gives its response; `undefined` where none is due. */
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
