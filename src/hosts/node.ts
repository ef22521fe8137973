// Node's HTTP server as a host: reads a request and writes its response.
import { AsyncResource } from 'node:async_hooks'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { IdentifiedCaller } from '../auth/authenticate.ts'
import { ByteBuffer, textOf } from '../protocol/byte-buffer.ts'
import { Cancel } from '../protocol/cancel.ts'
import type { App } from '../server/app.ts'
import type { AdmittedVisitor } from '../server/page.ts'
import type { Reply } from '../server/reply.ts'
import { UNAVAILABLE } from '../server/reply.ts'
import type { BodyReader } from './direct-request.ts'
import { DirectRequest } from './direct-request.ts'
import { EVENT_HEADERS, eventText } from './events.ts'
import type { Probed, ProbedSocket } from './half-closed.ts'
import { LAST_REQUEST } from './half-closed.ts'
import type { HttpExchange, HttpOptions } from './http.ts'
import { atCaller } from '../protocol/errors.ts'
import { HttpEndpoint, MAX_WAITING_BYTES, TOO_LARGE } from './http.ts'
import type { BodyReading, LoadLimits } from './load.ts'
import { load, TIMED_OUT } from './load.ts'
import { Outbox } from './outbox.ts'
import { mayWait, onLost } from './pipelined.ts'
import { SlowReaders } from './slow-readers.ts'

/** `body` is what a parser made of a body that it read. A function, such as the `next` of a middleware, is ignored. */
export type NodeHandler = (request: IncomingMessage, response: ServerResponse, body?: unknown) => void

/**
 * The request listener alone, to mount in a server of your own. Takes messages at every path. If something else has read the body,
 * such as `express.json()`, it takes `request.body`, or what you pass as its third argument.
 *
 * @example
 * express().all('/mcp', nodeHandler(app)).listen(3000)
 */
export function nodeHandler(app: App, options: HttpOptions = {}): NodeHandler {
  return handlerOf(atCaller(nodeHandler, () => new HttpEndpoint(app, options)))
}

export function handlerOf(endpoint: HttpEndpoint): NodeHandler {
  const outbox = new Outbox(new SlowReaders(endpoint.writeStallMs, endpoint.maxUnreadBytes))
  return (request, response, body) => {
    const { socket } = request
    if (response.socket === null && !mayWait(socket, response)) return void socket.destroy()
    const overload = endpoint.overload(request.method)
    if (overload === undefined) return endpoint.serve(new NodeExchange(endpoint, outbox, request, response, body))
    // A listener of the author's own has answered.
    if (response.headersSent) return
    if (endpoint.app.draining) response.setHeader('Connection', 'close')
    const { host, origin } = request.headers
    response
      .writeHead(overload.status, { ...overload.headers, ...endpoint.crossOrigin(host, origin) })
      .end(overload.text)
  }
}

/**
 * It keeps the async context that the handler was called in: an app may call it inside `storage.run()` of an AsyncLocalStorage. Node
 * calls the listeners of a body in the context of the connection.
 */
class NodeExchange extends AsyncResource implements HttpExchange, BodyReading, BodyReader {
  readonly cancel = new Cancel()
  caller: IdentifiedCaller | undefined
  visitor: AdmittedVisitor | undefined
  maxBodyBytes: number
  servedBytes: number | undefined
  holds = 0
  bodyDeadline = 0
  bodyBefore: BodyReading | undefined
  bodyAfter: BodyReading | undefined
  readonly #endpoint: HttpEndpoint
  readonly #outbox: Outbox
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #parsed: unknown
  readonly #body = new ByteBuffer(load.bytes)
  /** True when the body was read, or nothing more of it is wanted. */
  #isRead = false
  #streaming = false
  /** The request before this one on its connection, if the response to that one is still to come. */
  #earlier: Probed | undefined
  #comment: ((comment: string) => void) | undefined

  constructor(
    endpoint: HttpEndpoint,
    outbox: Outbox,
    request: IncomingMessage,
    response: ServerResponse,
    parsed: unknown,
  ) {
    super('RallyHttpExchange')
    this.#endpoint = endpoint
    this.maxBodyBytes = endpoint.maxBodyBytes
    this.#outbox = outbox
    this.#request = request
    this.#response = response
    this.#parsed = parsed
    const socket: ProbedSocket = request.socket
    if (response.socket === null) {
      this.#earlier = socket[LAST_REQUEST]
      onLost(socket, response, () => this.#closed())
    }
    socket[LAST_REQUEST] = this
    response.on('close', () => this.#closed())
  }

  #closed(): void {
    const [request, response] = [this.#request, this.#response]
    // The client disconnected before its response was written: nobody waits for the rest of this pass.
    if (!response.writableFinished) this.cancel.cancel()
    this.#earlier = undefined
    if (request instanceof DirectRequest) request.dropBody()
    this.#endBody()
    this.#stopComments()
    this.#outbox.slowReaders.forget(response)
  }

  get method(): string {
    return this.#request.method ?? ''
  }

  get url(): string {
    return this.#request.url ?? ''
  }

  get path(): string {
    const { url } = this
    const end = url.indexOf('?')
    return end === -1 ? url : url.slice(0, end)
  }

  get host(): string | undefined {
    return this.#request.headers.host
  }

  readonly header = (name: string): string | undefined => {
    const value = this.#request.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }

  get limits(): LoadLimits {
    return this.#endpoint.limits
  }

  get received(): number {
    return this.#body.length
  }

  readBody(): void {
    // The client left while its caller was being identified.
    if (this.cancel.cancelled) return
    const request: ParsedRequest = this.#request
    if (request.readableDidRead || request.readableEnded) {
      const parsed = typeof this.#parsed === 'function' ? undefined : this.#parsed
      // Null is the value of an event.
      const { body = parsed } = request
      return this.#endpoint.receiveParsed(this, parsed ?? body, READ_BEFORE)
    }
    load.beginBody(this)
    if (request instanceof DirectRequest && request.readBody(this)) return
    request.on('data', (chunk: Buffer) => this.receiveChunk(chunk))
    request.on('end', () => this.receiveEnd())
  }

  addHeaders(headers: Readonly<Record<string, string>>): void {
    if (this.#response.headersSent) return
    for (const [name, value] of Object.entries(headers)) this.#response.setHeader(name, value)
  }

  refuseBody(reply: Reply): void {
    this.#endBody()
    this.reply(reply)
  }

  receiveChunk(chunk: Buffer): void {
    const body = this.#body
    if (this.#isRead) return
    if (body.length + chunk.length > this.maxBodyBytes) {
      this.#endBody()
      return this.#endpoint.receiveTooLarge(this)
    }
    if (body.isCrumbled) {
      this.#endBody()
      return this.#endpoint.receiveCrumbled(this)
    }
    body.append(chunk)
    load.makeRoom(this.limits)
  }

  receiveEnd(): void {
    if (this.#isRead) return
    const bytes = this.#body.length
    const text = textOf(this.#body.view())
    this.#endBody()
    this.runInAsyncScope(receive, undefined, this.#endpoint, this, text, bytes)
  }

  /** Nothing more of the body is kept. A second call does nothing. */
  #endBody(): void {
    if (this.#isRead) return
    this.#isRead = true
    load.endBody(this)
    this.#body.clear()
  }

  notify(text: string): boolean {
    const response = this.#response
    if (this.cancel.cancelled || response.writableLength > MAX_WAITING_BYTES) return false
    if (!this.#streaming) this.#beginEvents()
    response.write(eventText(text))
    this.#outbox.slowReaders.watch(response)
    return true
  }

  reply(reply: Reply | undefined): void {
    const response = this.#response
    // Before the end is written: a slow reader may take long over it, and a comment after the end would be an error.
    this.#stopComments()
    if (this.cancel.cancelled) return
    if (this.#streaming) {
      response.end(reply === undefined ? undefined : eventText(reply.text))
      return this.#outbox.slowReaders.watch(response)
    }
    // Another handler of the same server was faster, such as one that limits the time of requests.
    if (response.headersSent) return
    // A draining instance sends its clients to others. A body that was not read makes the connection useless.
    if (this.#endpoint.app.draining || this.#isUnread(reply?.status)) response.setHeader('Connection', 'close')
    if (reply === undefined) response.writeHead(202).end()
    else if (reply.headers === undefined) this.#outbox.send(response, reply.status, reply.text)
    else if (reply.events !== undefined) this.#sendEvents(reply.events)
    else if (reply.text === '') response.writeHead(reply.status, reply.headers).end()
    else {
      response.writeHead(reply.status, jsonHeaders(reply)).end(reply.text)
      this.#outbox.slowReaders.watch(response)
    }
  }

  #isUnread(status: number | undefined): boolean {
    return status === TOO_LARGE || ((status === UNAVAILABLE || status === TIMED_OUT) && !this.#request.complete)
  }

  /** The client has closed its side of the connection: see half-closed.ts. */
  probe(): Probed | undefined {
    const response = this.#response
    if (response.writableEnded) return undefined
    if (response.socket === null) return this.#earlier
    if (this.#streaming) this.#comment?.(':\n\n')
    // A client must expect interim responses from HTTP 1.1 on.
    else if (!response.headersSent && this.#request.httpVersion === '1.1') response.writeProcessing()
    return undefined
  }

  #sendEvents(events: NonNullable<Reply['events']>): void {
    const response = this.#response
    this.#beginEvents()
    response.flushHeaders()
    events({
      send: (event) => {
        response.write(event)
        this.#outbox.slowReaders.watch(response)
      },
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
    response.writeHead(200, EVENT_HEADERS)
    this.#comment = (comment) => {
      response.write(comment)
      this.#outbox.slowReaders.watch(response)
    }
    this.#endpoint.keepAlive.add(this.#comment)
  }

  #stopComments(): void {
    if (this.#comment) this.#endpoint.keepAlive.delete(this.#comment)
  }
}

/** A request as body parsers leave it. */
interface ParsedRequest extends IncomingMessage {
  readonly body?: unknown
}

const READ_BEFORE =
  'Call the handler before anything reads the body, or pass the parsed body as its third argument: handle(request, response, body).'

function receive(endpoint: HttpEndpoint, exchange: HttpExchange, body: string, bytes: number): void {
  endpoint.receive(exchange, body, bytes)
}

function jsonHeaders({ headers, text }: Reply): Record<string, string> {
  return { 'Content-Type': 'application/json', 'Content-Length': String(Buffer.byteLength(text)), ...headers }
}
