// What every way to a server has in common: requests go out, and for each exactly one response or failure comes back.
import type { JSONRPCErrorObject, RequestId } from '../../protocol/messages.ts'
import type { ClientError } from '../errors.ts'
import type { Deadline } from '../deadline.ts'

export interface Transport {
  /** Over HTTP some of a message is repeated in headers. */
  readonly usesParamHeaders: boolean
  /** Gives a function that cancels the request, in the way of the transport; nothing is settled after that. */
  send(request: OutgoingRequest, callbacks: ResponseCallbacks): () => void
  /** Tells an older server of something. One that is not there any more need not know. */
  notify?(text: string): Promise<void>
  /** Requests under way are not settled any more. Bounded in time. */
  close(): Promise<void>
}

export interface OutgoingRequest {
  readonly id: number
  readonly method: string
  readonly revision: string
  /** The name of the tool or prompt, or the URI of the resource. */
  readonly name: string | undefined
  /** Headers for this request, names and values in turn. */
  readonly headers: readonly string[]
  /** The whole message. */
  readonly text: string
}

/** Told of one thing only, once. */
export interface ResponseCallbacks {
  /** Brings a response into the form of 2026-07-28, where it comes in another. Untrusted before and after. */
  readonly normalize?: ((message: Record<string, unknown>) => Record<string, unknown>) | undefined
  resolve(response: RpcResponse): void
  reject(error: ClientError): void
  /** Of the call that waits: older servers ask in the middle of it. */
  readonly deadline?: Deadline
}

/** A response whose envelope has been checked. */
export interface RpcResponse {
  readonly result: Record<string, unknown> | undefined
  readonly error: JSONRPCErrorObject | undefined
  /** How large it was. */
  readonly bytes: number
}

/**
 * A message that is no response: a notification, or on older revisions a request of the server's. `requestId` is the
 * request whose own stream it came on, where there is such a thing.
 */
export type ReceiveMessage = (message: Record<string, unknown>, requestId?: RequestId) => void
