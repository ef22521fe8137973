// Serves an app with Node's HTTP server, from listening to a drain that loses no call.
import type { RequestListener } from 'node:http'
import { Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { RallyError } from '../protocol/errors.ts'
import type { App } from '../server/app.ts'
import { checkBinding } from './admission.ts'
import type { HttpOptions } from './http.ts'
import { HttpEndpoint } from './http.ts'
import { checkLimits } from './load.ts'
import { handlerOf } from './node.ts'

export interface ServeOptions extends HttpOptions {
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
  /** Closes the server on SIGTERM, and then lets the signal end the process. Default true. */
  handleSignals?: boolean
}

export interface Serving {
  readonly url: string
  readonly port: number
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

/** Serves an app over HTTP. Resolves when the server listens. */
export function serve(app: App, options: ServeOptions = {}): Promise<Serving> {
  const { port = 3000, host = '127.0.0.1', path = '/mcp', drainMs = DEFAULT_DRAIN_MS, handleSignals = true } = options
  const { maxConnections = DEFAULT_MAX_CONNECTIONS, headersMs = DEFAULT_HEADERS_MS } = options
  checkBinding(host, options)
  checkLimits({ maxConnections, headersMs })
  if (app.draining) throw new RallyError('APP_CLOSED', 'serve(): this app was closed. Create a new one to serve again.')
  const endpoint = new HttpEndpoint(app, options, path)
  const server = new PatientServer(handlerOf(endpoint), headersMs, endpoint.limits.bodyMs)
  server.maxConnections = maxConnections
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => (closing ??= drain(app, server, drainMs).finally(() => forget(close)))
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.removeListener('error', reject)
      if (handleSignals) closeOnTerminate(close)
      app.work()
      const { port: bound } = server.address() as AddressInfo
      const name = host.includes(':') ? `[${host}]` : host
      resolve({ url: `http://${name}:${bound}${path}`, port: bound, server, close })
    })
  })
}

async function drain(app: App, server: PatientServer, drainMs: number): Promise<void> {
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
}

/** What to close on SIGTERM. */
const onTerminate = new Set<() => Promise<void>>()

/** True when other code listened for the signal too: then that code decides when the process ends. */
let othersDecide = false

function closeOnTerminate(close: () => Promise<void>): void {
  // Runs before all other listeners: a `once` listener is not counted any more after it has run.
  if (onTerminate.size === 0) process.prependListener('SIGTERM', terminate)
  onTerminate.add(close)
}

function forget(close: () => Promise<void>): void {
  if (onTerminate.delete(close) && onTerminate.size === 0) process.removeListener('SIGTERM', terminate)
}

/** Keeps listening until all is closed: the signal may come twice, as through npm, and must not end the process early. */
function terminate(): void {
  othersDecide ||= process.listenerCount('SIGTERM') > 1
  void Promise.allSettled(Array.from(onTerminate, (close) => close())).then(() => {
    if (othersDecide || process.listenerCount('SIGTERM') > 0) return
    // As if there had been no listener.
    process.kill(process.pid, 'SIGTERM')
    setTimeout(() => process.exit(TERMINATED), IMMUNE_MS)
  })
}

/** The first process of a container ignores its own signal. It exits with the status that stands for the signal. */
const TERMINATED = 128 + 15
const IMMUNE_MS = 100

/**
 * Node's HTTP server, except that it cuts nobody off. Node takes a connection for idle as soon as the whole response was
 * handed to it, and closes it even when a slow reader has most of that still to come.
 */
class PatientServer extends Server {
  readonly #sockets = new Set<Socket>()

  constructor(listener: RequestListener, headersMs: number, bodyMs: number) {
    const connectionsCheckingInterval = Math.min(DEADLINE_SWEEP_MS, headersMs)
    // The endpoint answers when a body takes too long. Node closes the connection of a body that nobody wants to read.
    const requestTimeout = headersMs + bodyMs + DEADLINE_SWEEP_MS
    super({ connectionsCheckingInterval, headersTimeout: headersMs, requestTimeout }, listener)
    this.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
  }

  /** Closes none while a response is being written: Node does not say on which connection. `close` calls this too. */
  override closeIdleConnections(): void {
    for (const { writableLength } of this.#sockets) if (writableLength > 0) return
    super.closeIdleConnections()
  }

  /** Closes connections without a request, as browsers open them in advance. To Node their first request has begun. */
  closeSilentConnections(): void {
    for (const socket of this.#sockets) if (socket.bytesRead === 0) socket.destroy()
  }
}
