// What a message is served with: what the host knows about it, and what the app shares with everything that serves it.
import type { Caller } from '../flow/caller.ts'
import type { Cancel } from '../protocol/cancel.ts'
import type { Implementation } from '../protocol/messages.ts'
import type { Registry } from './registry.ts'
import type { RoundServices } from './round.ts'
import type { Subscriptions } from './subscriptions.ts'

/** What a host knows about a message beside its content. */
export interface RequestContext {
  /** The caller, as the host authenticated it. Default: anonymous. */
  readonly caller?: Caller | undefined
  readonly cancel?: Cancel | undefined
  /**
   * Sends a notification, as JSON text, on the request's own stream, before its response. Returns `false` when it was
   * dropped because the reader is too far behind. Default: there is no stream.
   */
  readonly notify?: ((text: string) => unknown) | undefined
  /** For a call of which this is not the first request. Default: nothing was sent. */
  readonly progress?: SentProgress | undefined
  /** Default false. */
  readonly overHttp?: boolean | undefined
  /** True over standard streams. Default false. */
  readonly overPipe?: boolean | undefined
}

/** What a client was told about the progress of a call: the numbers only rise, over all segments of the call. */
export interface SentProgress {
  highest: number | undefined
}

/** What the app shares with everything that serves its messages. */
export interface AppServices extends RoundServices {
  readonly info: Implementation
  readonly instructions: string | undefined
  readonly registry: Registry
  readonly subscriptions: Subscriptions
}
