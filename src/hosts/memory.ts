// Calls an app in the same process, through the same JSON text that a network would carry.
import type { AuthenticatedCaller } from '../auth/authenticate.ts'
import { callerOf } from '../auth/authenticate.ts'
import { Cancel } from '../protocol/cancel.ts'
import type { JSONRPCNotification, JSONRPCResponse } from '../protocol/messages.ts'
import type { App } from '../server/app.ts'

/** Options of `send()`. */
export interface SendOptions {
  /** The principal of the caller, if nothing else about it matters. Default: that of `caller`. */
  principal?: string
  /** The caller, as `authenticate` of an HTTP host would return it. Default: anonymous. */
  caller?: AuthenticatedCaller
  /** Cancels the call. Default: nothing does. */
  signal?: AbortSignal
  /** Called with every notification before the response. Default: they are dropped. */
  onNotification?: (notification: JSONRPCNotification) => void
}

/**
 * Sends one message to an app. Resolves to its response, or to `undefined` when there is none, as to a notification.
 *
 * @example
 * const response = await send(app, { jsonrpc: '2.0', id: 1, method: 'tools/list', params })
 */
export async function send(app: App, message: object, options: SendOptions = {}): Promise<JSONRPCResponse | undefined> {
  const { principal, signal, onNotification } = options
  const { caller = principal === undefined ? undefined : { principal } } = options
  const identified = caller && callerOf(caller, 'send(): `caller`')
  const cancel = new Cancel()
  const abort = (): void => cancel.cancel()
  signal?.addEventListener('abort', abort, { once: true })
  if (signal?.aborted) abort()
  const notify = onNotification && ((text: string) => onNotification(JSON.parse(text) as JSONRPCNotification))
  try {
    const reply = await app.dispatch(JSON.parse(JSON.stringify(message)), { caller: identified, cancel, notify })
    return reply && (JSON.parse(reply.text) as JSONRPCResponse)
  } finally {
    signal?.removeEventListener('abort', abort)
  }
}
