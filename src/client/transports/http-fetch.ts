// An HTTP client on top of a fetch function: the user's own, or the platform's where node:http is missing.
import type { HttpClient, HttpResponseListener } from './http-client.ts'
import { wasSent } from './http-client.ts'
import type { FetchInit, FetchLike } from '../options.ts'

export function fetchClient(url: URL, fetch: FetchLike): HttpClient {
  const send = (
    method: FetchInit['method'],
    headers: readonly string[],
    body: { body?: string },
    listener: HttpResponseListener,
  ): (() => void) => {
    const controller = new AbortController()
    const init = {
      method,
      headers: recordOf(headers),
      ...body,
      signal: controller.signal,
      // The headers may hold secrets, which are meant for this server only.
      redirect: 'manual',
    } as const
    void exchange(() => fetch(url.href, init), listener, controller.signal)
    return () => controller.abort()
  }
  return {
    post: (headers, body, listener) => send('POST', headers, { body }, listener),
    open: (method, headers, _isIdle, listener) => send(method, headers, {}, listener),
    close: () => {},
  }
}

async function exchange(
  send: () => Promise<Response>,
  listener: HttpResponseListener,
  signal: AbortSignal,
): Promise<void> {
  let response: Response
  try {
    response = await send()
  } catch (error) {
    // The error itself usually says only "fetch failed"; its cause has the reason.
    const reason = error instanceof Error ? (error.cause ?? error) : error
    if (!signal.aborted) listener.failed(reason, wasSent(reason))
    return
  }
  if (signal.aborted) return void response.body?.cancel().catch(() => {})
  listener.head(response.status, (name) => response.headers.get(name) ?? undefined)
  try {
    await readBody(response, listener, signal)
  } catch (error) {
    if (!signal.aborted) listener.failed(error, true)
  }
}

async function readBody({ body }: Response, listener: HttpResponseListener, signal: AbortSignal): Promise<void> {
  if (body === null) return listener.end()
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader()
  // A custom fetch may ignore the signal, so the body is cancelled as well.
  const stop = (): void => void reader.cancel().catch(() => {})
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) listener.data(chunk.value)
  signal.removeEventListener('abort', stop)
  if (!signal.aborted) listener.end()
}

function recordOf(headers: readonly string[]): Record<string, string> {
  const record: Record<string, string> = {}
  for (let i = 0; i < headers.length; i += 2) record[headers[i] ?? ''] = headers[i + 1] ?? ''
  return record
}
