// What every transport has in common: requests go out, and each is settled exactly once, by a response or an error.
import type { JSONRPCErrorObject, RequestId } from '../../protocol/messages.ts'
import type { ClientCall } from '../call.ts'
import type { ClientError } from '../errors.ts'
import type { Deadline } from '../deadline.ts'

export interface Transport {
  /** True if a tool call repeats some of its arguments in HTTP headers. */
  readonly usesParamHeaders: boolean
  /** True if a request can vanish without a sign, and reach the server over another connection. */
  readonly canLoseRequests: boolean
  /** Returns a function that cancels the request and tells the server. The callbacks are not called after that. */
  send(request: OutgoingRequest, callbacks: ResponseCallbacks): () => void
  /** Sends a notification to a legacy server. A server that is gone is not an error. */
  notify?(text: string): Promise<void>
  /** Does not settle requests that are in flight. Takes a bounded time. */
  close(): Promise<void>
}

export interface OutgoingRequest {
  readonly id: number
  readonly method: string
  readonly revision: string
  /** The name of the tool or prompt, or the URI of the resource. */
  readonly name: string | undefined
  /** HTTP headers of this request: name, value, name, value. */
  readonly headers: readonly string[]
  /** The whole message as JSON text. */
  readonly text: string
  /** The params that the text was written from, where they were given as a value. */
  readonly params: Readonly<Record<string, unknown>> | undefined
  /** The user's call that this request belongs to. */
  readonly call: ClientCall | undefined
}

/** Exactly one of `resolve` and `reject` is called, once. */
export interface ResponseCallbacks {
  /** Rewrites a draft's response into the form of 2026-07-28. The message is untrusted before and after. */
  readonly normalize?: ((message: Record<string, unknown>) => Record<string, unknown>) | undefined
  /** The server has begun a stream of events, so the request has reached it. */
  started?(): void
  resolve(response: RpcResponse): void
  reject(error: ClientError): void
  /** Of the call that waits. Legacy servers ask questions during the call, and its clock is paused meanwhile. */
  readonly deadline?: Deadline
}

/** A response whose envelope has been checked. */
export interface RpcResponse {
  readonly result: Record<string, unknown> | undefined
  readonly error: JSONRPCErrorObject | undefined
  /** Size of the response. */
  readonly bytes: number
}

/**
 * Takes a message that is not a response: a notification, or a request from a legacy server. `requestId` is the request
 * whose own stream the message arrived on, if the transport has such streams.
 */
export type ReceiveMessage = (message: Record<string, unknown>, requestId?: RequestId) => void
