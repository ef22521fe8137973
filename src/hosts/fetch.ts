// A fetch handler as a host: Hono, Bun, Deno, Workers.
import { Cancel } from '../protocol/cancel.ts'
import type { App } from '../server/app.ts'
import type { Reply } from '../server/reply.ts'
import { admission } from './admission.ts'
import type { AuthenticatedCaller } from '../auth/authenticate.ts'
import { identify } from '../auth/authenticate.ts'
import { answerDocument } from './documents.ts'
import type { HttpOptions } from './http.ts'
import {
  allowedMethods,
  answerBody,
  answerGet,
  DEFAULT_KEEP_ALIVE_MS,
  DEFAULT_MAX_BODY_BYTES,
  isJson,
  refusalOf,
  refusalText,
  SSE_HEADERS,
  sseEvent,
  takesEvents,
} from './http.ts'
import { KeepAlive } from './keep-alive.ts'

export type FetchHandler = (request: Request) => Promise<Response>

export function fetchHandler(app: App, options: HttpOptions = {}): FetchHandler {
  const { authenticate, maxBodyBytes = DEFAULT_MAX_BODY_BYTES, keepAliveMs = DEFAULT_KEEP_ALIVE_MS } = options
  const keepAlive = new KeepAlive(keepAliveMs)
  const admit = admission(options)

  return async (request) => {
    const document = authenticate?.documents?.get(new URL(request.url).pathname)
    if (document !== undefined) return documentResponse(request.method, document)
    const header = (name: string): string | undefined => request.headers.get(name) ?? undefined
    const refusal = admit(header('host') ?? new URL(request.url).host, header('origin'))
    if (refusal !== undefined) return refuse(403, refusal)
    if (request.method === 'POST') {
      if (!isJson(header('content-type'))) return refuse(415, 'Content-Type must be application/json.')
      if (Number(header('content-length')) > maxBodyBytes) return tooLarge(maxBodyBytes)
    } else {
      const allowed = allowedMethods(app, header)
      if (!allowed.includes(request.method)) {
        return refuse(405, 'Send messages by POST.', { Allow: allowed.join(', ') })
      }
    }
    let caller: AuthenticatedCaller | undefined
    try {
      if (authenticate !== undefined) {
        caller = await identify(authenticate, { method: request.method, url: request.url, header })
      }
    } catch (error) {
      const { status, message, headers } = refusalOf(error, app.logger)
      return refuse(status, message, headers)
    }
    if (request.method !== 'POST') return respondToGet(app, request, header, caller, keepAlive)
    let body: string | undefined
    try {
      body = await readBody(request, maxBodyBytes)
    } catch (error) {
      if (!request.signal.aborted) app.logger.warn('The body of a request could not be read.', { error })
      return refuse(400, 'The body could not be read.')
    }
    return body === undefined ? tooLarge(maxBodyBytes) : respond(app, request, body, header, caller, keepAlive)
  }
}

/** JSON, unless a notification comes before the reply: then a stream of events. */
function respond(
  app: App,
  request: Request,
  body: string,
  header: (name: string) => string | undefined,
  caller: AuthenticatedCaller | undefined,
  keepAlive: KeepAlive,
): Promise<Response> {
  const cancel = new Cancel()
  const abort = (): void => cancel.cancel()
  request.signal.addEventListener('abort', abort, { once: true })
  if (request.signal.aborted) abort()
  return new Promise((resolve) => {
    let events: EventStream | undefined
    const notify = (text: string): boolean => {
      if (events === undefined) {
        events = new EventStream(abort, keepAlive)
        resolve(new Response(events.readable, { headers: SSE_HEADERS }))
      }
      return events.send(sseEvent(text))
    }
    const principal = caller?.principal
    const context = {
      principal,
      cancel,
      overHttp: true,
      notify: takesEvents(header('accept')) ? notify : undefined,
    }
    void Promise.resolve(answerBody(app, body, header, context, caller)).then((reply) => {
      request.signal.removeEventListener('abort', abort)
      if (events !== undefined) events.end(reply?.text)
      else if (reply === undefined) resolve(new Response(null, { status: 202 }))
      else if (reply.events !== undefined) resolve(eventResponse(reply.events, abort, keepAlive))
      else resolve(new Response(reply.text, { status: reply.status, headers: { ...JSON_HEADERS, ...reply.headers } }))
    })
  })
}

/** Only where the app serves older revisions. */
async function respondToGet(
  app: App,
  request: Request,
  header: (name: string) => string | undefined,
  caller: AuthenticatedCaller | undefined,
  keepAlive: KeepAlive,
): Promise<Response> {
  const peer = new Cancel()
  if (app.legacy === undefined) return refuse(405, 'Send messages by POST.', { Allow: 'POST' })
  const { events, text, status } = await answerGet(app, app.legacy, header, peer, caller)
  if (status === 204) return new Response(null, { status })
  if (events === undefined) return new Response(text, { status, headers: JSON_HEADERS })
  const gone = (): void => peer.cancel()
  request.signal.addEventListener('abort', gone, { once: true })
  return eventResponse(events, gone, keepAlive)
}

function eventResponse(events: NonNullable<Reply['events']>, gone: () => void, keepAlive: KeepAlive): Response {
  const stream = new EventStream(gone, keepAlive)
  events({ send: (event) => stream.write(event), isBehind: () => stream.isBehind, end: () => stream.end(undefined) })
  return new Response(stream.readable, { headers: SSE_HEADERS })
}

const JSON_HEADERS = { 'Content-Type': 'application/json' }

/** Notifications that may wait for a slow reader; further ones are dropped. */
const MOST_WAITING = 1_000

class EventStream {
  readonly readable: ReadableStream<Uint8Array>
  readonly #encoder = new TextEncoder()
  readonly #keepAlive: KeepAlive
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined

  constructor(closed: () => void, keepAlive: KeepAlive) {
    this.readable = new ReadableStream(
      {
        start: (controller) => {
          this.#controller = controller
        },
        cancel: () => {
          this.#over()
          closed()
        },
      },
      { highWaterMark: MOST_WAITING },
    )
    this.#keepAlive = keepAlive
    keepAlive.add(this.send)
  }

  get isBehind(): boolean {
    return (this.#controller?.desiredSize ?? 0) <= 0
  }

  /** Gives `false` where it was dropped. */
  readonly send = (event: string): boolean => {
    if (this.isBehind) return false
    this.write(event)
    return true
  }

  write(event: string): void {
    this.#controller?.enqueue(this.#encoder.encode(event))
  }

  end(text: string | undefined): void {
    if (text !== undefined) this.#controller?.enqueue(this.#encoder.encode(sseEvent(text)))
    this.#controller?.close()
    this.#over()
  }

  #over(): void {
    this.#controller = undefined
    this.#keepAlive.delete(this.send)
  }
}

async function readBody(request: Request, maxBodyBytes: number): Promise<string | undefined> {
  if (request.body === null) return ''
  // With its byte order mark, if it has one: no host takes that for JSON.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
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

function documentResponse(method: string, document: string): Response {
  const { status, headers, text } = answerDocument(method, document)
  return new Response(text ?? null, { status, headers })
}

function tooLarge(maxBodyBytes: number): Response {
  return refuse(413, `The body is larger than ${maxBodyBytes} bytes.`)
}

function refuse(status: number, message: string, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(refusalText(message), { status, headers: { ...JSON_HEADERS, ...headers } })
}
