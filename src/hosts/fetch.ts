// A fetch handler as a host: Hono, Bun, Deno, Workers.
import { Cancel } from '../flow/cancel.ts'
import type { App } from '../server/app.ts'
import { admission } from './admission.ts'
import { principalOf, Refused } from './authenticate.ts'
import type { HttpOptions } from './http.ts'
import { answerBody, DEFAULT_MAX_BODY_BYTES, isJson, refusalText, SSE_HEADERS, sseEvent, takesEvents } from './http.ts'

export type FetchHandler = (request: Request) => Promise<Response>

export function fetchHandler(app: App, options: HttpOptions = {}): FetchHandler {
  const { authenticate, maxBodyBytes = DEFAULT_MAX_BODY_BYTES } = options
  const admit = admission(options)

  return async (request) => {
    const header = (name: string): string | undefined => request.headers.get(name) ?? undefined
    const refusal = admit(header('host') ?? new URL(request.url).host, header('origin'))
    if (refusal !== undefined) return refuse(403, refusal)
    if (request.method !== 'POST') return refuse(405, 'Send messages by POST.', { Allow: 'POST' })
    if (!isJson(header('content-type'))) return refuse(415, 'Content-Type must be application/json.')
    if (Number(header('content-length')) > maxBodyBytes) return tooLarge(maxBodyBytes)
    let principal: string | undefined
    try {
      if (authenticate !== undefined) {
        principal = await principalOf(authenticate, { method: request.method, url: request.url, header })
      }
    } catch (error) {
      if (error instanceof Refused) return refuse(error.status, error.message, error.headers)
      app.logger.error('authenticate failed.', { error })
      return refuse(500, 'Authentication failed.')
    }
    const body = await readBody(request, maxBodyBytes)
    return body === undefined ? tooLarge(maxBodyBytes) : respond(app, request, body, header, principal)
  }
}

/** JSON, unless a notification comes before the reply: then a stream of events. */
function respond(
  app: App,
  request: Request,
  body: string,
  header: (name: string) => string | undefined,
  principal: string | undefined,
): Promise<Response> {
  const cancel = new Cancel()
  const abort = (): void => cancel.cancel()
  request.signal.addEventListener('abort', abort, { once: true })
  const headers = { version: header('mcp-protocol-version'), method: header('mcp-method'), name: header('mcp-name') }
  return new Promise((resolve) => {
    let events: EventStream | undefined
    const notify = (text: string): void => {
      if (events === undefined) {
        events = new EventStream(abort)
        resolve(new Response(events.readable, { headers: SSE_HEADERS }))
      }
      events.send(text)
    }
    const context = { principal, cancel, overHttp: true, notify: takesEvents(header('accept')) ? notify : undefined }
    void Promise.resolve(answerBody(app, body, headers, context)).then((reply) => {
      request.signal.removeEventListener('abort', abort)
      if (events !== undefined) events.end(reply?.text)
      else if (reply === undefined) resolve(new Response(null, { status: 202 }))
      else resolve(new Response(reply.text, { status: reply.status, headers: JSON_HEADERS }))
    })
  })
}

const JSON_HEADERS = { 'Content-Type': 'application/json' }

/** Notifications that may wait for a slow reader; further ones are dropped. */
const MOST_WAITING = 1_000

class EventStream {
  readonly readable: ReadableStream<Uint8Array>
  readonly #encoder = new TextEncoder()
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined

  constructor(closed: () => void) {
    this.readable = new ReadableStream(
      {
        start: (controller) => {
          this.#controller = controller
        },
        cancel: () => {
          this.#controller = undefined
          closed()
        },
      },
      { highWaterMark: MOST_WAITING },
    )
  }

  send(text: string): void {
    if ((this.#controller?.desiredSize ?? 0) > 0) this.#controller?.enqueue(this.#encoder.encode(sseEvent(text)))
  }

  end(text: string | undefined): void {
    if (text !== undefined) this.#controller?.enqueue(this.#encoder.encode(sseEvent(text)))
    this.#controller?.close()
    this.#controller = undefined
  }
}

async function readBody(request: Request, maxBodyBytes: number): Promise<string | undefined> {
  if (request.body === null) return ''
  const decoder = new TextDecoder()
  let bytes = 0
  let text = ''
  const reader: ReadableStreamDefaultReader<Uint8Array> = request.body.getReader()
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    bytes += chunk.value.byteLength
    if (bytes > maxBodyBytes) {
      await reader.cancel()
      return undefined
    }
    text += decoder.decode(chunk.value, { stream: true })
  }
  return text + decoder.decode()
}

function tooLarge(maxBodyBytes: number): Response {
  return refuse(413, `The body is larger than ${maxBodyBytes} bytes.`)
}

function refuse(status: number, message: string, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(refusalText(message), { status, headers: { ...JSON_HEADERS, ...headers } })
}
