// What a message is served with: what the host knows of it, and what the app has.
import type { Cancel } from '../protocol/cancel.ts'
import type { Registry } from './registry.ts'
import type { RoundHost } from './round.ts'
import type { Subscriptions } from './subscriptions.ts'

/** What a host knows about a message beside its content. */
export interface Context {
  /** Who is calling, as the host authenticated it. */
  readonly principal?: string | undefined
  readonly cancel?: Cancel | undefined
  /**
   * Sends a notification, as JSON text, on the request's own stream, before its response. Gives `false` where it was
   * dropped because the reader is too far behind.
   */
  readonly notify?: ((text: string) => unknown) | undefined
  readonly overHttp?: boolean | undefined
}

/** What dispatch needs of its app. */
export interface DispatchHost extends RoundHost {
  readonly registry: Registry
  readonly subscriptions: Subscriptions
  readonly instructions: string | undefined
}
