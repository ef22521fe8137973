// Node's HTTP server as a host.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Cancel } from '../flow/cancel.ts'
import type { App } from '../server/app.ts'
import { admission, checkBinding } from './admission.ts'
import { principalOf, Refused } from './authenticate.ts'
import type { HttpOptions } from './http.ts'
import {
  answerBody,
  DEFAULT_MAX_BODY_BYTES,
  isJson,
  MAX_WAITING_BYTES,
  refusalText,
  SSE_HEADERS,
  sseEvent,
  takesEvents,
} from './http.ts'
import { Outbox } from './outbox.ts'

export interface ServeOptions extends HttpOptions {
  /** Default 3000; 0 takes any free one. */
  port?: number
  /** Address to listen on. Default '127.0.0.1'. Any other than loopback needs `allowedHosts`. */
  host?: string
  /** Default '/mcp'. */
  path?: string
}

export interface Serving {
  readonly url: string
  readonly port: number
  readonly server: Server
  /** Stops accepting, and resolves once what is under way has been answered. */
  close(): Promise<void>
}

/** Serves an app over HTTP. Resolves once it listens. */
export function serve(app: App, options: ServeOptions = {}): Promise<Serving> {
  const { port = 3000, host = '127.0.0.1', path = '/mcp' } = options
  checkBinding(host, options)
  const handle = nodeHandler(app, options)
  const server = createServer((request, response) => {
    const { url = '' } = request
    if (url === path || url.startsWith(`${path}?`)) handle(request, response)
    else refuse(response, 404, `Nothing is served at this path; the endpoint is ${path}.`)
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.removeListener('error', reject)
      const { port: bound } = server.address() as AddressInfo
      const name = host.includes(':') ? `[${host}]` : host
      resolve({ url: `http://${name}:${bound}${path}`, port: bound, server, close: () => close(server) })
    })
  })
}

/** The request listener alone, to be mounted in a server that is there already. */
export function nodeHandler(
  app: App,
  options: HttpOptions = {},
): (request: IncomingMessage, response: ServerResponse) => void {
  const { authenticate, maxBodyBytes = DEFAULT_MAX_BODY_BYTES } = options
  const admit = admission(options)
  const outbox = new Outbox()

  return (request, response) => {
    const { headers } = request
    const refusal = admit(headers.host, headers.origin)
    if (refusal !== undefined) return refuse(response, 403, refusal)
    if (request.method !== 'POST') return refuse(response, 405, 'Send messages by POST.', { Allow: 'POST' })
    if (!isJson(headers['content-type'])) return refuse(response, 415, 'Content-Type must be application/json.')
    if (Number(headers['content-length']) > maxBodyBytes) return refuseBody(response, maxBodyBytes)
    const exchange = new Exchange(app, request, response, outbox)
    if (authenticate === undefined) return exchange.read(maxBodyBytes)
    principalOf(authenticate, {
      method: request.method,
      url: request.url ?? '',
      header: (name) => single(headers[name.toLowerCase()]),
    }).then(
      (principal) => exchange.read(maxBodyBytes, principal),
      (error: unknown) => exchange.refuse(error),
    )
  }
}

/** One request and its response. */
class Exchange {
  readonly #app: App
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #outbox: Outbox
  readonly #cancel = new Cancel()
  #streaming = false

  constructor(app: App, request: IncomingMessage, response: ServerResponse, outbox: Outbox) {
    this.#app = app
    this.#request = request
    this.#response = response
    this.#outbox = outbox
    response.on('close', () => {
      // The peer went away before its answer: nobody waits for the rest of this pass.
      if (!response.writableFinished) this.#cancel.cancel()
    })
  }

  read(maxBodyBytes: number, principal?: string): void {
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
      this.#answer(body.toString('utf8'), principal)
    })
  }

  refuse(error: unknown): void {
    if (error instanceof Refused) return refuse(this.#response, error.status, error.message, error.headers)
    this.#app.logger.error('authenticate failed.', { error })
    refuse(this.#response, 500, 'Authentication failed.')
  }

  #answer(body: string, principal: string | undefined): void {
    const { headers } = this.#request
    const agreed = {
      version: single(headers['mcp-protocol-version']),
      method: single(headers['mcp-method']),
      name: single(headers['mcp-name']),
    }
    const notify = takesEvents(headers.accept) ? (text: string) => this.#notify(text) : undefined
    const reply = answerBody(this.#app, body, agreed, { principal, cancel: this.#cancel, notify, overHttp: true })
    if (reply instanceof Promise) void reply.then((later) => this.#send(later?.status ?? 202, later?.text))
    else this.#send(reply.status, reply.text)
  }

  #send(status: number, text: string | undefined): void {
    const response = this.#response
    if (this.#cancel.cancelled) return
    if (this.#streaming) response.end(text === undefined ? undefined : sseEvent(text))
    else if (text === undefined) response.writeHead(status).end()
    else this.#outbox.send(response, status, text)
  }

  #notify(text: string): void {
    const response = this.#response
    if (this.#cancel.cancelled || response.writableLength > MAX_WAITING_BYTES) return
    if (!this.#streaming) {
      this.#streaming = true
      response.writeHead(200, SSE_HEADERS)
    }
    response.write(sseEvent(text))
  }
}

function refuseBody(response: ServerResponse, maxBodyBytes: number): void {
  // What is left of the body is not read, so the connection cannot be used again.
  refuse(response, 413, `The body is larger than ${maxBodyBytes} bytes.`, { Connection: 'close' })
}

function refuse(
  response: ServerResponse,
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (response.headersSent) return
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(refusalText(message))
}

function close(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.close((error) => (error ? reject(error) : resolve()))
    server.closeIdleConnections()
  })
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value
}
