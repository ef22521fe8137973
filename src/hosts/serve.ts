// Serves an app with Node's HTTP server, from listening to a drain that loses no call.
import type { RequestListener } from 'node:http'
import { Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { atCaller, RallyError } from '../protocol/errors.ts'
import { checkBooleans, checkLimits } from '../protocol/options.ts'
import { shown } from '../protocol/text.ts'
import type { App } from '../server/app.ts'
import { checkBinding } from './admission.ts'
import { DirectRequest } from './direct-request.ts'
import type { HttpOptions } from './http.ts'
import { HttpEndpoint } from './http.ts'
import { watchHalfClosed } from './half-closed.ts'
import type { HealthOptions } from './health.ts'
import { probeHandler } from './health.ts'
import { load } from './load.ts'
import { handlerOf } from './node.ts'
import { refuseEarly } from './refuse-early.ts'
import type { Stop } from './signals.ts'
import { forgetSignals, stopOnSignals } from './signals.ts'

/** Options of `serve()`. */
export interface ServeOptions extends HttpOptions, HealthOptions {
  /** 0 takes any free port. Default 3000. */
  port?: number
  /** The address to listen on. Any other than loopback needs `allowedHosts`. Default '127.0.0.1'. */
  host?: string
  /** The path of the endpoint. Default '/mcp'. */
  path?: string
  /** How long a running call may take to reach its next step when the server closes, in milliseconds. Default 10 000. */
  drainMs?: number
  /** How many connections are open at a time. A further one is closed at once. Default 10 000. */
  maxConnections?: number
  /** How long a client may take to send the headers of a request, in milliseconds. Past it there is a 408. Default 10 000. */
  headersMs?: number
  /**
   * How long the server still serves after SIGTERM while `/readyz` fails, in milliseconds: so long a load balancer may take to send
   * its requests elsewhere. SIGINT and `close()` do not wait. Default 0.
   */
  drainDelayMs?: number
  /**
   * Closes the server on SIGTERM and SIGINT, and then lets the signal end the process. A second SIGINT, half a second later or more,
   * ends it at once. Default true.
   */
  handleSignals?: boolean
}

/** A server that listens: its address, and the function that closes it. */
export interface Serving {
  /** The address of the MCP endpoint. */
  readonly url: string
  /** The port that the server listens on. */
  readonly port: number
  /** The server of `node:http`. */
  readonly server: Server
  /**
   * Stops accepting connections and drains the app. Running calls are handed over at their next step: the response is a
   * state from which another instance continues. Streams end. Resolves when everything has been answered.
   */
  readonly close: () => Promise<void>
}

const DEFAULT_DRAIN_MS = 10_000
const DEFAULT_MAX_CONNECTIONS = 10_000
const DEFAULT_HEADERS_MS = 10_000

/** How often Node looks for requests that take too long, in milliseconds. */
const DEADLINE_SWEEP_MS = 1_000

/** How long a new connection has to send its first request. */
const FIRST_REQUEST_MS = 500

/** How long the responses of interrupted calls have to be written. */
const LAST_RESPONSES_MS = 1_000

const SWEEP_MS = 20

/**
 * Serves an app over HTTP. Resolves when the server listens.
 *
 * @example
 * const { url, close } = await serve(app, { port: 3000 })
 */
export function serve(app: App, options: ServeOptions = {}): Promise<Serving> {
  const { port = 3000, host = '127.0.0.1', path = '/mcp', drainMs = DEFAULT_DRAIN_MS, handleSignals = true } = options
  const { maxConnections = DEFAULT_MAX_CONNECTIONS, headersMs = DEFAULT_HEADERS_MS } = options
  const { drainDelayMs = 0 } = options
  const { endpoint, probed } = atCaller(serve, () => {
    checkBinding(host, options)
    checkLimits({ maxConnections, headersMs })
    checkBooleans({ handleSignals })
    checkDelay(drainDelayMs)
    checkOpen(app)
    const made = new HttpEndpoint(app, options, path)
    return { endpoint: made, probed: probeHandler(app, options, path, made.limits.maxLagMs) }
  })
  const handle = handlerOf(endpoint)
  const listener: RequestListener = (request, response) => {
    if (request.url === path || !probed(request, response)) handle(request, response)
  }
  const server = new PatientServer(listener, headersMs, endpoint.limits.bodyMs)
  server.maxConnections = maxConnections
  // A draining instance closes its connections, and says so in its responses.
  const refusal = (): Uint8Array | undefined => (app.draining ? undefined : load.refusal(endpoint.limits)?.bytes)
  server.on('connection', (socket: Socket) => {
    load.backlog.accepted()
    refuseEarly(socket, refusal)
  })
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => (closing ??= drain(app, server, drainMs).finally(() => forgetSignals(stop)))
  const stop: Stop = (signal) => {
    app.logger.info?.('A signal came: the server stops.', { signal, drainDelayMs, drainMs })
    app.failReadiness()
    return signal === 'SIGTERM' && drainDelayMs > 0 ? closeAfter(server, drainDelayMs, close) : close()
  }
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.removeListener('error', reject)
      if (handleSignals) stopOnSignals(stop)
      app.work()
      const { port: bound } = server.address() as AddressInfo
      const name = host.includes(':') ? `[${host}]` : host
      const url = `http://${name}:${bound}${path}`
      app.logger.info?.('The server is listening.', { url, name: app.info.name, version: app.info.version })
      resolve({ url, port: bound, server, close })
    })
  })
}

/** Resolves when it is closed, also if `close` is called before the time. */
async function closeAfter(server: Server, delayMs: number, close: () => Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  await Promise.race([
    new Promise((resolve) => (timer = setTimeout(resolve, delayMs))),
    new Promise((resolve) => server.once('close', resolve)),
  ])
  clearTimeout(timer)
  await close()
}

function checkDelay(drainDelayMs: number): void {
  if (drainDelayMs >= 0) return
  throw new RallyError('OPTION_INVALID', `\`drainDelayMs\` must be a number of 0 or more, got ${shown(drainDelayMs)}.`)
}

function checkOpen(app: App): void {
  if (!app.draining) return
  throw new RallyError('APP_CLOSED', 'serve(): this app was closed. Create a new one to serve again.')
}

async function drain(app: App, server: PatientServer, drainMs: number): Promise<void> {
  const began = performance.now()
  app.logger.info?.('The server is draining: it accepts no connections, and hands calls over at their next step.')
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  app.drain()
  const interruption = setTimeout(() => app.interrupt(), drainMs)
  const end = setTimeout(() => server.closeAllConnections(), drainMs + LAST_RESPONSES_MS)
  // Closes connections that have become idle, such as those of streams.
  const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS)
  const silence = setTimeout(() => server.closeSilentConnections(), FIRST_REQUEST_MS)
  // A store that cannot be reached must not delay the end: its leases expire.
  const limit = new Promise((resolve) => setTimeout(resolve, drainMs + LAST_RESPONSES_MS).unref())
  await Promise.all([closed, Promise.race([app.idle(), limit])])
  for (const timer of [interruption, end, silence]) clearTimeout(timer)
  clearInterval(sweep)
  app.logger.info?.('The server has drained.', { ms: Math.round(performance.now() - began) })
}

/** How long a connection may be silent before it makes room for others. */
const SILENT_MS = 1_000

/** Other runtimes have a server of the same form, and each reads bodies in its own way. */
const isNode = process.versions['bun'] === undefined && process.versions['deno'] === undefined

/**
 * Node's HTTP server, except that it cuts nobody off. Node takes a connection for idle as soon as the whole response was
 * handed to it, and closes it even when a slow reader has most of that still to come. And it drops the response to a client
 * that closed its own side after its request.
 */
class PatientServer extends Server {
  /** The open connections, and when each was opened. */
  readonly #sockets = new Map<Socket, number>()
  #madeRoomAt = 0

  constructor(listener: RequestListener, headersMs: number, bodyMs: number) {
    const connectionsCheckingInterval = Math.min(DEADLINE_SWEEP_MS, headersMs)
    // The endpoint answers when a body takes too long. Node closes the connection of a body that nobody wants to read.
    const requestTimeout = headersMs + bodyMs + DEADLINE_SWEEP_MS
    const requests = isNode ? { IncomingMessage: DirectRequest } : {}
    super({ connectionsCheckingInterval, headersTimeout: headersMs, requestTimeout, ...requests }, listener)
    // Node's own switch, older than its types.
    Reflect.set(this, 'httpAllowHalfOpen', true)
    this.on('connection', (socket: Socket) => {
      this.#sockets.set(socket, performance.now())
      socket.once('end', () => watchHalfClosed(socket))
      socket.once('close', () => this.#sockets.delete(socket))
    })
    // There are as many as `maxConnections`.
    this.on('drop', () => this.#makeRoom())
  }

  /** Closes connections that have sent nothing for a while, so that they do not keep others out. */
  #makeRoom(): void {
    const before = performance.now() - SILENT_MS
    if (this.#madeRoomAt > before) return
    this.#madeRoomAt = performance.now()
    for (const [socket, openedAt] of this.#sockets) if (socket.bytesRead === 0 && openedAt < before) socket.destroy()
  }

  /** Closes none while a response is being written: Node does not say on which connection. `close` calls this too. */
  override closeIdleConnections(): void {
    for (const { writableLength } of this.#sockets.keys()) if (writableLength > 0) return
    super.closeIdleConnections()
  }

  /** Closes connections without a request, as browsers open them in advance. To Node their first request has begun. */
  closeSilentConnections(): void {
    for (const socket of this.#sockets.keys()) if (socket.bytesRead === 0) socket.destroy()
  }
}
