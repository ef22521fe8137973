// Sends the requests of a login: to addresses that were checked, without redirects, and with bounds on size and time.
import { allowInsecureRequests, customFetch } from 'oauth4webapi'
import { ByteBuffer } from '../../protocol/byte-buffer.ts'
import { shown } from '../../protocol/text.ts'
import type { FetchLike } from '../options.ts'
import { checkAddress } from './address.ts'
import { failedAt, loginFailed } from './errors.ts'

/** Of one response: metadata, a registration or tokens. */
const MAX_BYTES = 131_072
/** From the request to the last byte of the response. */
const MAX_MS = 10_000

export interface BoundedRequest {
  readonly method?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
}

export type BoundedFetch = (url: string, request?: BoundedRequest) => Promise<Response>

/** What every request of the library gets. Addresses are checked by the fetch itself. */
export interface RequestOptions {
  readonly [customFetch]: BoundedFetch
  readonly [allowInsecureRequests]: true
  readonly signal: AbortSignal
}

export function requestOptions(fetch: BoundedFetch, signal: AbortSignal): RequestOptions {
  return { [customFetch]: fetch, [allowInsecureRequests]: true, signal }
}

/** `server` is the one that the login is for. Its metadata must not lead further inside than it is itself. */
export function boundedFetch(server: URL, fetch: FetchLike): BoundedFetch {
  return async (address, { method = 'GET', headers = {}, body, signal } = {}) => {
    const url = checkAddress(address, 'an address of the login', server)
    const timeout = new AbortController()
    const timer = setTimeout(() => timeout.abort(loginFailed(`${url.host} took longer than ${MAX_MS} ms`)), MAX_MS)
    const ended = signal === undefined ? timeout.signal : AbortSignal.any([signal, timeout.signal])
    try {
      const response = await unlessAborted(
        fetch(url.href, {
          method: method === 'POST' ? 'POST' : 'GET',
          headers: { accept: 'application/json', ...headers },
          ...(body !== undefined && body !== null && { body: textOf(body) }),
          signal: ended,
          redirect: 'manual',
        }),
        ended,
      )
      if (response.type === 'opaqueredirect' || (response.status >= 300 && response.status < 400)) {
        void response.body?.cancel().catch(() => {})
        throw loginFailed(`${shown(url.href)} redirects, and redirects are not followed`)
      }
      return await bounded(response, url, ended)
    } catch (error) {
      throw ended.aborted ? (ended.reason as Error) : failedAt(shown(url.href), error)
    } finally {
      clearTimeout(timer)
    }
  }
}

async function bounded(response: Response, url: URL, ended: AbortSignal): Promise<Response> {
  const { status, headers, body } = response
  const bytes = new ByteBuffer()
  if (body !== null) {
    const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader()
    try {
      for (;;) {
        const { done, value } = await unlessAborted(reader.read(), ended)
        if (done) break
        if (bytes.length + value.byteLength > MAX_BYTES) {
          throw loginFailed(`the response of ${shown(url.href)} is larger than ${MAX_BYTES} bytes`)
        }
        bytes.append(value)
      }
    } catch (error) {
      void reader.cancel().catch(() => {})
      throw error
    }
  }
  return new Response(bytes.length === 0 ? null : bytes.view().slice(), { status, headers: headersOf(headers) })
}

/** The size and encoding of the bytes on the wire are not those of the bytes here. */
function headersOf(headers: Headers): Headers {
  const kept = new Headers()
  for (const name of ['content-type', 'www-authenticate']) {
    const value = headers.get(name)
    if (value !== null) kept.set(name, value)
  }
  return kept
}

/** A custom `fetch` may ignore the signal. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    void promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

function textOf(body: unknown): string {
  return body instanceof URLSearchParams ? body.toString() : String(body)
}
