// A request listener of Node's HTTP server as a host.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Cancel } from '../protocol/cancel.ts'
import type { App } from '../server/app.ts'
import type { Reply } from '../server/reply.ts'
import { admission } from './admission.ts'
import type { AuthenticatedCaller } from '../auth/authenticate.ts'
import { identify } from '../auth/authenticate.ts'
import { answerDocument, pathOf } from './documents.ts'
import type { HttpOptions } from './http.ts'
import {
  allowedMethods,
  answerBody,
  answerGet,
  DEFAULT_KEEP_ALIVE_MS,
  DEFAULT_MAX_BODY_BYTES,
  isJson,
  MAX_WAITING_BYTES,
  refusalOf,
  refusalText,
  SSE_HEADERS,
  sseEvent,
  takesEvents,
} from './http.ts'
import { KeepAlive } from './keep-alive.ts'
import { onLost } from './lost.ts'
import { Outbox } from './outbox.ts'

/** The request listener alone, to be mounted in a server that is there already. */
export function nodeHandler(
  app: App,
  options: HttpOptions = {},
): (request: IncomingMessage, response: ServerResponse) => void {
  const { authenticate, maxBodyBytes = DEFAULT_MAX_BODY_BYTES, keepAliveMs = DEFAULT_KEEP_ALIVE_MS } = options
  const admit = admission(options)
  const outbox = new Outbox()
  const keepAlive = new KeepAlive(keepAliveMs)

  return (request, response) => {
    const document = authenticate?.documents?.get(pathOf(request.url ?? ''))
    if (document !== undefined) return sendDocument(request, response, document)
    const { headers } = request
    const refusal = admit(headers.host, headers.origin)
    if (refusal !== undefined) return refuse(response, 403, refusal)
    const { method = '' } = request
    if (method === 'POST') {
      if (!isJson(headers['content-type'])) return refuse(response, 415, 'Content-Type must be application/json.')
      if (Number(headers['content-length']) > maxBodyBytes) return refuseBody(response, maxBodyBytes)
    } else {
      const allowed = allowedMethods(app, (name) => single(headers[name]))
      if (!allowed.includes(method)) return refuse(response, 405, NOT_BY_POST, { Allow: allowed.join(', ') })
    }
    const exchange = new Exchange(app, request, response, outbox, keepAlive)
    if (authenticate === undefined) return exchange.begin(maxBodyBytes)
    identify(authenticate, {
      method,
      url: request.url ?? '',
      header: (name) => single(headers[name.toLowerCase()]),
    }).then(
      (caller) => exchange.begin(maxBodyBytes, caller),
      (error: unknown) => exchange.refuse(error),
    )
  }
}

const NOT_BY_POST = 'Send messages by POST.'

/** One request and its response. */
class Exchange {
  readonly #app: App
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #outbox: Outbox
  readonly #keepAlive: KeepAlive
  readonly #cancel = new Cancel()
  #streaming = false
  #comment: ((comment: string) => void) | undefined

  constructor(app: App, request: IncomingMessage, response: ServerResponse, outbox: Outbox, keepAlive: KeepAlive) {
    this.#app = app
    this.#request = request
    this.#response = response
    this.#outbox = outbox
    this.#keepAlive = keepAlive
    const forget = response.socket === null ? onLost(request.socket, () => this.#cancel.cancel()) : undefined
    response.on('close', () => {
      forget?.()
      // The peer went away before its answer: nobody waits for the rest of this pass.
      if (!response.writableFinished) this.#cancel.cancel()
      this.#stopComments()
    })
  }

  begin(maxBodyBytes: number, caller?: AuthenticatedCaller): void {
    if (this.#request.method === 'POST') this.#read(maxBodyBytes, caller)
    else this.#listen(caller)
  }

  refuse(error: unknown): void {
    const { status, message, headers } = refusalOf(error, this.#app.logger)
    refuse(this.#response, status, message, headers)
  }

  #read(maxBodyBytes: number, caller: AuthenticatedCaller | undefined): void {
    const chunks: Buffer[] = []
    let bytes = 0
    this.#request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes <= maxBodyBytes) chunks.push(chunk)
      else if (!this.#response.headersSent) refuseBody(this.#response, maxBodyBytes)
    })
    this.#request.on('end', () => {
      if (bytes > maxBodyBytes) return
      const [first] = chunks
      const body = chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks)
      this.#answer(body.toString('utf8'), caller)
    })
  }

  /** Only where the app serves older revisions. */
  #listen(caller: AuthenticatedCaller | undefined): void {
    const { legacy } = this.#app
    if (legacy === undefined) return
    const header = (name: string): string | undefined => single(this.#request.headers[name])
    void answerGet(this.#app, legacy, header, this.#cancel, caller).then((reply) => this.#send(reply))
  }

  #answer(body: string, caller: AuthenticatedCaller | undefined): void {
    const { headers } = this.#request
    const header = (name: string): string | undefined => single(headers[name])
    const notify = takesEvents(headers.accept) ? (text: string) => this.#notify(text) : undefined
    const context = {
      principal: caller?.principal,
      cancel: this.#cancel,
      notify,
      overHttp: true,
    }
    const reply = answerBody(this.#app, body, header, context, caller)
    if (reply instanceof Promise) void reply.then((later) => this.#send(later))
    else this.#send(reply)
  }

  #send(reply: Reply | undefined): void {
    const response = this.#response
    // Now, because a slow reader may take long over the rest, and a comment after the end would be an error.
    this.#stopComments()
    if (this.#cancel.cancelled) return
    // The next request of this peer is better sent to another instance.
    if (this.#app.draining && !response.headersSent) response.setHeader('Connection', 'close')
    if (this.#streaming) response.end(reply === undefined ? undefined : sseEvent(reply.text))
    else if (reply === undefined) response.writeHead(202).end()
    else if (reply.headers === undefined) this.#outbox.send(response, reply.status, reply.text)
    else if (reply.events !== undefined) this.#sendEvents(reply.events)
    else response.writeHead(reply.status, { 'Content-Type': 'application/json', ...reply.headers }).end(reply.text)
  }

  #sendEvents(events: NonNullable<Reply['events']>): void {
    const response = this.#response
    this.#beginEvents()
    response.flushHeaders()
    events({
      send: (event) => void response.write(event),
      isBehind: () => response.writableLength > MAX_WAITING_BYTES,
      end: () => {
        this.#stopComments()
        response.end()
      },
    })
  }

  #beginEvents(): void {
    const response = this.#response
    this.#streaming = true
    response.writeHead(200, SSE_HEADERS)
    this.#comment = (comment) => void response.write(comment)
    this.#keepAlive.add(this.#comment)
  }

  #stopComments(): void {
    if (this.#comment) this.#keepAlive.delete(this.#comment)
  }

  #notify(text: string): boolean {
    const response = this.#response
    if (this.#cancel.cancelled || response.writableLength > MAX_WAITING_BYTES) return false
    if (!this.#streaming) this.#beginEvents()
    response.write(sseEvent(text))
    return true
  }
}

function sendDocument({ method }: IncomingMessage, response: ServerResponse, document: string): void {
  const { status, headers, text } = answerDocument(method, document)
  response.writeHead(status, headers).end(text)
}

function refuseBody(response: ServerResponse, maxBodyBytes: number): void {
  // What is left of the body is not read, so the connection cannot be used again.
  refuse(response, 413, `The body is larger than ${maxBodyBytes} bytes.`, { Connection: 'close' })
}

export function refuse(
  response: ServerResponse,
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (response.headersSent) return
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(refusalText(message))
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value
}
