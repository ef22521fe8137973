// Observers of a client: what telemetry learns about each request, and what it adds to it. A client without them does not enter this file.
import type { Logger } from '../protocol/logger.ts'
import { ProtocolError } from '../protocol/errors.ts'
import { ObserverLog } from '../protocol/observer-log.ts'
import { shown } from '../protocol/text.ts'
import type { ClientCall } from './call.ts'
import { ClientError, wrongOption } from './errors.ts'

/** Watches a client: pass it to `connect(server, { observers })`. */
export interface ClientObserver {
  /** A request to the server, with its retries, until the response. */
  request?(request: ObservedRequest): RequestObservation | void | null
}

/** A request of the client that an observer is told about. */
export interface ObservedRequest {
  /** Such as `tools/call`. */
  readonly method: string
  /** The name of the tool or prompt, or the URI of the resource. `undefined` if the method has none. */
  readonly target: string | undefined
  /** The arguments of a tool or prompt. */
  readonly args: Readonly<Record<string, unknown>> | undefined
  /** The revision of the protocol, such as `2026-07-28`. */
  readonly revision: string
  /** The same object in every round of one call. `undefined` if the request belongs to no call. */
  readonly call: object | undefined
  /** Where the request goes. */
  readonly server: ObservedServer
}

/** Where the requests of a client go. */
export interface ObservedServer {
  /** `tcp` over HTTP, `pipe` over standard streams, `undefined` in memory. */
  readonly transport: 'tcp' | 'pipe' | undefined
  /** The host name of the server. `undefined` if it is not called over HTTP. */
  readonly address: string | undefined
  /** The port of the server. `undefined` if it is not called over HTTP. */
  readonly port: number | undefined
}

/** What an observer of the client returns: members for the request, and a function for its end. */
export interface RequestObservation {
  /** Members to add to the `_meta` of the request, such as a `traceparent`. */
  readonly meta?: Readonly<Record<string, string>>
  /** Called when the request has ended. Optional. */
  end?(end: RequestEnd): void
}

/** How a request of the client ended. */
export interface RequestEnd {
  /** `error` is a JSON-RPC error or a failure of the client, and `tool_error` a result with `isError`. */
  readonly outcome: 'complete' | 'tool_error' | 'input_required' | 'task' | 'error'
  /** `code` is the code of a JSON-RPC error, or else that of the `ClientError`. */
  readonly error?: { readonly code: number | string; readonly message: string }
}

/** A request that is about to be sent. */
interface SentRequest {
  readonly method: string
  readonly name?: string | undefined
  readonly call?: ClientCall | undefined
}

/** Methods whose requests name something. The id of a task is a secret of its caller. */
const TARGET_METHODS: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])

/** Throws if they are not observers. Returns `undefined` if there are none. */
export function readObservers(
  observers: readonly ClientObserver[],
  server: string | URL | object,
  logger: Logger,
): ClientObservers | undefined {
  if (!Array.isArray(observers) || !observers.every((each) => typeof each === 'object' && each !== null)) {
    throw wrongOption(`observers: must be an array of observers, got ${shown(observers)}.`)
  }
  return observers.length === 0 ? undefined : new ClientObservers([...observers], serverOf(server), logger)
}

/** The observers of a client, safe to call. */
export class ClientObservers {
  readonly #all: readonly ClientObserver[]
  readonly #server: ObservedServer
  readonly #log: ObserverLog

  constructor(observers: readonly ClientObserver[], server: ObservedServer, logger: Logger) {
    this.#all = observers
    this.#server = server
    this.#log = new ObserverLog(logger)
  }

  /** Sends a request. `send` takes the members to add to `_meta`: JSON text without braces, empty if there are none. */
  async observe<T extends { readonly result: Readonly<Record<string, unknown>> }>(
    { method, name, call }: SentRequest,
    revision: string,
    send: (metaText: string) => Promise<T>,
  ): Promise<T> {
    const { metaText, end } = this.#begin({
      method,
      target: TARGET_METHODS.has(method) ? name : undefined,
      args: call !== undefined && 'arguments' in call ? call.arguments : undefined,
      revision,
      call,
      server: this.#server,
    })
    try {
      const served = await send(metaText)
      end(endOfResult(served.result))
      return served
    } catch (error) {
      end(endOfError(error))
      throw error
    }
  }

  #begin(request: ObservedRequest): { metaText: string; end: (end: RequestEnd) => void } {
    const begun: RequestObservation[] = []
    for (const [index, observer] of this.#all.entries()) {
      const observation = this.#log.begin(`observers[${index}].request`, () => observer.request?.(request))
      if (observation !== undefined) begun.push(observation)
    }
    const meta = Object.assign({}, ...begun.map((each) => each.meta ?? {})) as Record<string, string>
    return {
      metaText: JSON.stringify(meta).slice(1, -1),
      end: (end) => {
        for (const each of begun) this.#log.safely(() => each.end?.(end))
      },
    }
  }
}

function endOfResult({ resultType, isError }: Readonly<Record<string, unknown>>): RequestEnd {
  if (resultType === 'input_required' || resultType === 'task') return { outcome: resultType }
  return { outcome: isError === true ? 'tool_error' : 'complete' }
}

function endOfError(error: unknown): RequestEnd {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof ProtocolError) return { outcome: 'error', error: { code: error.rpcCode, message } }
  return { outcome: 'error', error: { code: error instanceof ClientError ? error.code : '_OTHER', message } }
}

function serverOf(server: string | URL | object): ObservedServer {
  if (typeof server === 'string' || server instanceof URL) {
    const { hostname: address, port, protocol } = new URL(server)
    return { transport: 'tcp', address, port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port) }
  }
  return { transport: 'dispatch' in server ? undefined : 'pipe', address: undefined, port: undefined }
}
