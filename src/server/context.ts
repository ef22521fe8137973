// What a message is served with: what the host knows about it, and what the app shares with everything that serves it.
import type { Caller } from '../flow/caller.ts'
import type { Cancel } from '../protocol/cancel.ts'
import type { Implementation, ServerCapabilities } from '../protocol/messages.ts'
import type { AnswerPage } from './page.ts'
import type { Registry } from './registry.ts'
import type { RequestInfo } from './request.ts'
import type { ResolvedRequest } from './resolve.ts'
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
  /** Whose share of the mailbox a request without a principal uses. Default: nobody's. */
  readonly mailboxOwner?: string | undefined
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
  /** Asks in pages, where clients have no forms. */
  readonly apps: Apps | undefined
}

/** Clients that are asked in a page: of their host (MCP Apps), or of our own by a link. */
export interface Apps {
  /** The page by a link. `undefined` if that is off. */
  readonly page: AnswerPage | undefined
  /** How a request is served for such a client; `undefined` if as for any other. */
  methodOf(request: ResolvedRequest, info: RequestInfo): AppsMethod | undefined
  /** What the discovery result contains for such a client in addition; `undefined` for other clients. */
  capabilities(info: RequestInfo): ServerCapabilities | undefined
  /** What such a client reads when a tool asks that has no page; `undefined` for other clients and tools. */
  unlinkedText(request: ResolvedRequest, info: RequestInfo): string | undefined
}

/** Like a method of the protocol: see `Method` in methods.ts. */
export interface AppsMethod {
  readonly isRound?: true
  readonly text: (
    app: AppServices,
    request: ResolvedRequest,
    info: RequestInfo,
    context: RequestContext,
  ) => Promise<string | undefined>
}
