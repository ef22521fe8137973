// HTTP as a way to a server: one request, one POST, and its response as JSON or as a stream of events.
import { encodeHeader } from '../../protocol/headers.ts'
import type { ClientError } from '../errors.ts'
import { wrongOption } from '../errors.ts'
import { HttpAnswer } from './http-response.ts'
import type { HeadersOption, HeaderValues } from '../options.ts'
import type { OutgoingRequest, ReceiveMessage, Transport, ResponseCallbacks } from './transport.ts'
import type { HttpClient } from './http-client.ts'

export interface HttpOptions {
  readonly headers: HeadersOption | undefined
  readonly maxResponseBytes: number
}

export class HttpTransport implements Transport {
  readonly usesParamHeaders = true
  readonly #wire: HttpClient
  readonly #receive: ReceiveMessage
  readonly #maxBytes: number
  readonly #headers: readonly string[]
  readonly #freshHeaders: (() => Promise<readonly string[]>) | undefined

  constructor(wire: HttpClient, { headers = {}, maxResponseBytes }: HttpOptions, receive: ReceiveMessage) {
    this.#wire = wire
    this.#receive = receive
    this.#maxBytes = maxResponseBytes
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
    this.#wire.close()
  }

  #post(request: OutgoingRequest, headers: readonly string[], callbacks: ResponseCallbacks): () => void {
    const { id, method, revision, name, headers: own, text } = request
    const all = [...headers, 'MCP-Protocol-Version', revision, 'Mcp-Method', method]
    if (name !== undefined) all.push('Mcp-Name', encodeHeader(name))
    for (const part of own) all.push(part)
    const answer = new HttpAnswer(id, this.#maxBytes, this.#receive, callbacks)
    return answer.endedBy(this.#wire.post(all, text, answer))
  }
}

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

export function readHeaders(headers: HeaderValues): string[] {
  return Object.entries(headers).flatMap(([name, value]) => {
    if (!NAME.test(name)) throw wrongOption(`headers: ${JSON.stringify(name)} is no name of a header.`)
    if (RESERVED.test(name)) throw wrongOption(`headers: ${name} is the client's own to set.`)
    // Not shown: it is a secret more often than not.
    if (typeof value !== 'string' || !VALUE.test(value)) {
      throw wrongOption(`headers: the value of ${name} is none that a header can have.`)
    }
    return [name, value]
  })
}
