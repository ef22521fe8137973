// A fetch function as a wire: the user's own, or the platform's where Node's client is not there.
import type { HttpClient, HttpResponseListener } from './http-client.ts'
import type { FetchInit, FetchLike } from '../options.ts'
import { wasSent } from './was-sent.ts'

export function fetchClient(url: URL, fetch: FetchLike): HttpClient {
  const send = (
    method: FetchInit['method'],
    headers: readonly string[],
    body: object,
    answer: HttpResponseListener,
  ) => {
    const controller = new AbortController()
    const init = {
      method,
      headers: recordOf(headers),
      ...body,
      signal: controller.signal,
      // Whatever the headers hold is meant for this server alone.
      redirect: 'manual',
    } as const
    void exchange(() => fetch(url.href, init), answer, controller.signal)
    return () => controller.abort()
  }
  return {
    post: (headers, body, answer) => send('POST', headers, { body }, answer),
    open: (method, headers, _isIdle, answer) => send(method, headers, {}, answer),
    close: () => {},
  }
}

async function exchange(
  send: () => Promise<Response>,
  answer: HttpResponseListener,
  signal: AbortSignal,
): Promise<void> {
  let response: Response
  try {
    response = await send()
  } catch (error) {
    // As a rule "fetch failed", and the cause says why.
    const why = error instanceof Error ? (error.cause ?? error) : error
    if (!signal.aborted) answer.failed(why, wasSent(why))
    return
  }
  if (signal.aborted) return void response.body?.cancel().catch(() => {})
  answer.head(response.status, (name) => response.headers.get(name) ?? undefined)
  try {
    await readBody(response, answer, signal)
  } catch (error) {
    if (!signal.aborted) answer.failed(error, true)
  }
}

async function readBody({ body }: Response, answer: HttpResponseListener, signal: AbortSignal): Promise<void> {
  if (body === null) return answer.end()
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader()
  // One that does not look at the signal it was given still is to be told.
  const stop = (): void => void reader.cancel().catch(() => {})
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) answer.data(chunk.value)
  signal.removeEventListener('abort', stop)
  if (!signal.aborted) answer.end()
}

function recordOf(headers: readonly string[]): Record<string, string> {
  const record: Record<string, string> = {}
  for (let i = 0; i < headers.length; i += 2) record[headers[i] ?? ''] = headers[i + 1] ?? ''
  return record
}
