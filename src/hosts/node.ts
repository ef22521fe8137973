// Node's HTTP server as a host: reads a request and writes its response.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { AuthenticatedCaller } from '../auth/authenticate.ts'
import { Cancel } from '../protocol/cancel.ts'
import type { App } from '../server/app.ts'
import type { Reply } from '../server/reply.ts'
import { EVENT_HEADERS, eventText } from './events.ts'
import type { HttpExchange, HttpOptions } from './http.ts'
import { HttpEndpoint, MAX_WAITING_BYTES, TOO_LARGE } from './http.ts'
import { Outbox } from './outbox.ts'

export type NodeHandler = (request: IncomingMessage, response: ServerResponse) => void

/** The request listener alone, to mount in a server of your own. Takes messages at every path. */
export function nodeHandler(app: App, options: HttpOptions = {}): NodeHandler {
  return handlerOf(new HttpEndpoint(app, options))
}

export function handlerOf(endpoint: HttpEndpoint): NodeHandler {
  const outbox = new Outbox()
  return (request, response) => endpoint.serve(new NodeExchange(endpoint, outbox, request, response))
}

class NodeExchange implements HttpExchange {
  readonly cancel = new Cancel()
  caller: AuthenticatedCaller | undefined
  readonly #endpoint: HttpEndpoint
  readonly #outbox: Outbox
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  #streaming = false
  #comment: ((comment: string) => void) | undefined

  constructor(endpoint: HttpEndpoint, outbox: Outbox, request: IncomingMessage, response: ServerResponse) {
    this.#endpoint = endpoint
    this.#outbox = outbox
    this.#request = request
    this.#response = response
    const forget = response.socket === null ? onClosed(request.socket, () => this.cancel.cancel()) : undefined
    response.on('close', () => {
      forget?.()
      // The client disconnected before its response was written: nobody waits for the rest of this pass.
      if (!response.writableFinished) this.cancel.cancel()
      this.#stopComments()
    })
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

  readBody(): void {
    const { maxBodyBytes } = this.#endpoint
    const chunks: Buffer[] = []
    let bytes = 0
    this.#request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes <= maxBodyBytes) chunks.push(chunk)
      else if (!this.#response.headersSent) this.#endpoint.receiveTooLarge(this)
    })
    this.#request.on('end', () => {
      if (bytes > maxBodyBytes) return
      const [first] = chunks
      const body = chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks)
      this.#endpoint.receive(this, body.toString('utf8'))
    })
  }

  notify(text: string): boolean {
    const response = this.#response
    if (this.cancel.cancelled || response.writableLength > MAX_WAITING_BYTES) return false
    if (!this.#streaming) this.#beginEvents()
    response.write(eventText(text))
    return true
  }

  reply(reply: Reply | undefined): void {
    const response = this.#response
    // Before the end is written: a slow reader may take long over it, and a comment after the end would be an error.
    this.#stopComments()
    if (this.cancel.cancelled) return
    if (this.#streaming) return void response.end(reply === undefined ? undefined : eventText(reply.text))
    // Another handler of the same server was faster, such as one that limits the time of requests.
    if (response.headersSent) return
    // A draining instance sends its clients to others. A body that was not read makes the connection useless.
    if (this.#endpoint.app.draining || reply?.status === TOO_LARGE) response.setHeader('Connection', 'close')
    if (reply === undefined) response.writeHead(202).end()
    else if (reply.headers === undefined) this.#outbox.send(response, reply.status, reply.text)
    else if (reply.events !== undefined) this.#sendEvents(reply.events)
    else if (reply.text === '') response.writeHead(reply.status, reply.headers).end()
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
    response.writeHead(200, EVENT_HEADERS)
    this.#comment = (comment) => void response.write(comment)
    this.#endpoint.keepAlive.add(this.#comment)
  }

  #stopComments(): void {
    if (this.#comment) this.#endpoint.keepAlive.delete(this.#comment)
  }
}

/** Requests that wait for their turn on a connection. Node reports a lost connection only to the response whose turn it is. */
const waiting = new WeakMap<Socket, Set<() => void>>()

/** Calls the listener when the connection closes. Returns a function that stops it. One socket listener serves all requests. */
function onClosed(socket: Socket, listener: () => void): () => void {
  const listeners = waiting.get(socket) ?? new Set()
  if (!waiting.has(socket)) {
    waiting.set(socket, listeners)
    socket.once('close', () => {
      for (const each of listeners) each()
    })
  }
  listeners.add(listener)
  return () => void listeners.delete(listener)
}
