// The HTTP transport: each request is one POST, and its response arrives as JSON or as a stream of events.
import { encodeHeader } from '../../protocol/headers.ts'
import type { ClientError } from '../errors.ts'
import { wrongOption } from '../errors.ts'
import type { HeadersOption, HeaderValues } from '../options.ts'
import type { HttpClient, HttpResponseListener } from './http-client.ts'
import type { ResponseHandler, ResponseHead, ResponseLimits } from './http-response.ts'
import { ResponseReader } from './http-response.ts'
import { statusError } from './http-status.ts'
import { isResponse, parseMessage, readResponse } from './message.ts'
import type { OutgoingRequest, ReceiveMessage, ResponseCallbacks, RpcResponse, Transport } from './transport.ts'

export interface HttpOptions {
  readonly headers: HeadersOption | undefined
  readonly limits: ResponseLimits
}

export class HttpTransport implements Transport {
  readonly usesParamHeaders = true
  readonly canLoseRequests = true
  readonly #http: HttpClient
  readonly #receive: ReceiveMessage
  readonly #limits: ResponseLimits
  readonly #headers: readonly string[]
  /** Used when the `headers` option is a function. */
  readonly #freshHeaders: (() => Promise<readonly string[]>) | undefined

  constructor(http: HttpClient, { headers = {}, limits }: HttpOptions, receive: ReceiveMessage) {
    this.#http = http
    this.#receive = receive
    this.#limits = limits
    const isFunction = typeof headers === 'function'
    this.#headers = isFunction ? JSON_HEADERS : [...JSON_HEADERS, ...readHeaders(headers)]
    this.#freshHeaders = isFunction ? async () => [...JSON_HEADERS, ...readHeaders(await headers())] : undefined
  }

  send(request: OutgoingRequest, callbacks: ResponseCallbacks): () => void {
    if (this.#freshHeaders === undefined) return this.#post(request, this.#headers, callbacks)
    let isCancelled = false
    let cancel = (): void => {
      isCancelled = true
    }
    void this.#freshHeaders().then(
      (headers) => {
        if (!isCancelled) cancel = this.#post(request, headers, callbacks)
      },
      (error: unknown) => {
        if (!isCancelled) callbacks.reject(error as ClientError)
      },
    )
    return () => cancel()
  }

  async close(): Promise<void> {
    this.#http.close()
  }

  #post(request: OutgoingRequest, headers: readonly string[], callbacks: ResponseCallbacks): () => void {
    const { id, method, revision, name, headers: own, text } = request
    const all = [...headers, 'MCP-Protocol-Version', revision, 'Mcp-Method', method]
    if (name !== undefined) all.push('Mcp-Name', encodeHeader(name))
    for (const part of own) all.push(part)
    const exchange = new Exchange(id, this.#limits, this.#receive, callbacks)
    return exchange.start((listener) => this.#http.post(all, text, listener))
  }
}

/** One POST and its response. */
class Exchange implements ResponseHandler {
  readonly #id: number
  readonly #receive: ReceiveMessage
  readonly #callbacks: ResponseCallbacks
  readonly #reader: ResponseReader

  constructor(id: number, limits: ResponseLimits, receive: ReceiveMessage, callbacks: ResponseCallbacks) {
    this.#id = id
    this.#receive = receive
    this.#callbacks = callbacks
    this.#reader = new ResponseReader(limits, this)
  }

  start(send: (listener: HttpResponseListener) => () => void): () => void {
    this.#reader.start(send)
    return () => this.#reader.cancel()
  }

  head({ isStream }: ResponseHead): void {
    if (isStream) this.#callbacks.started?.()
  }

  event(data: string): void {
    try {
      const message = parseMessage(data)
      if (!isResponse(message)) return this.#receive(message, this.#id)
      const response = readResponse(message, this.#id, data.length)
      this.#reader.finish()
      this.#callbacks.resolve(response)
    } catch (error) {
      this.#reader.failed(error, true)
    }
  }

  body(text: string, head: ResponseHead, bytes: number): void {
    let response: RpcResponse
    try {
      const error = statusError(head, text)
      if (error !== undefined) return this.#callbacks.reject(error)
      response = readResponse(parseMessage(text), this.#id, bytes)
    } catch (error) {
      return this.#callbacks.reject(error as ClientError)
    }
    this.#callbacks.resolve(response)
  }

  failed(error: ClientError): void {
    this.#callbacks.reject(error)
  }

  pauseClock(): () => void {
    return this.#callbacks.deadline?.pauseClock() ?? (() => {})
  }
}

/** Headers of every POST. */
export const JSON_HEADERS: readonly string[] = [
  'Content-Type',
  'application/json',
  'Accept',
  'application/json, text/event-stream',
]

const RESERVED =
  /^(content-type|content-length|accept|host|transfer-encoding|mcp-protocol-version|mcp-session-id|last-event-id|mcp-method|mcp-name|mcp-param-.*)$/i
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Checks the `headers` option. Returns a flat list: name, value, name, value. */
export function readHeaders(headers: HeaderValues): string[] {
  return Object.entries(headers).flatMap(([name, value]) => {
    if (!NAME.test(name)) throw wrongOption(`headers: ${JSON.stringify(name)} is not a valid header name.`)
    if (RESERVED.test(name)) throw wrongOption(`headers: ${name} is set by the client. Remove it from headers.`)
    // The value is not show: it is often a secret.
    if (typeof value !== 'string' || !VALUE.test(value)) {
      throw wrongOption(
        `headers: the value of ${name} must be a string of characters that are valid in a header, got ${typeof value}.`,
      )
    }
    return [name, value]
  })
}
