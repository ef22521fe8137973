// Node's HTTP server with an app on it, from listening to a drain that loses nothing.
import type { RequestListener } from 'node:http'
import { Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { RallyError } from '../protocol/errors.ts'
import type { App } from '../server/app.ts'
import { checkBinding } from './admission.ts'
import type { HttpOptions } from './http.ts'
import { HttpEndpoint } from './http.ts'
import { handlerOf } from './node.ts'

export interface ServeOptions extends HttpOptions {
  /** Default 3000; 0 takes any free one. */
  port?: number
  /** Address to listen on. Default '127.0.0.1'. Any other than loopback needs `allowedHosts`. */
  host?: string
  /** Default '/mcp'. */
  path?: string
  /** How long a call under way may take to its next step once the server closes, in milliseconds. Default 10 000. */
  drainMs?: number
  /** Closes the server on SIGTERM, and lets the process end as that signal ends it. Default true. */
  handleSignals?: boolean
}

export interface Serving {
  readonly url: string
  readonly port: number
  readonly server: Server
  /**
   * Stops accepting and drains the app: calls under way are handed over at their next step, each with a state that goes
   * on elsewhere, and streams end. Resolves once everything has been answered.
   */
  readonly close: () => Promise<void>
}

const DEFAULT_DRAIN_MS = 10_000

/** For the first request of a connection that was just opened to come in. */
const FIRST_WORDS_MS = 500

/** For the answers of interrupted calls to get out. */
const LAST_WORDS_MS = 1_000

const SWEEP_MS = 20

/** Serves an app over HTTP. Resolves once it listens. */
export function serve(app: App, options: ServeOptions = {}): Promise<Serving> {
  const { port = 3000, host = '127.0.0.1', path = '/mcp', drainMs = DEFAULT_DRAIN_MS, handleSignals = true } = options
  checkBinding(host, options)
  if (app.draining) throw new RallyError('APP_CLOSED', 'This app has been closed. Make a new one to serve again.')
  const server = new PatientServer(handlerOf(new HttpEndpoint(app, options, path)))
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
  const end = setTimeout(() => server.closeAllConnections(), drainMs + LAST_WORDS_MS)
  // Connections that were busy and have nothing more to do, such as those of streams.
  const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS)
  const silence = setTimeout(() => server.closeSilentConnections(), FIRST_WORDS_MS)
  // A store that cannot be reached holds nobody up: the leases run out.
  const limit = new Promise((resolve) => setTimeout(resolve, drainMs + LAST_WORDS_MS).unref())
  await Promise.all([closed, Promise.race([app.idle(), limit])])
  for (const timer of [interruption, end, silence]) clearTimeout(timer)
  clearInterval(sweep)
}

/** What is closed when the process is told to go. */
const onTerminate = new Set<() => Promise<void>>()

/** Somebody else has listened when the signal came, and decides when to go. */
let isOthersToDecide = false

function closeOnTerminate(close: () => Promise<void>): void {
  // Before everybody else: one that listens only once is not seen any more when its turn is over.
  if (onTerminate.size === 0) process.prependListener('SIGTERM', terminate)
  onTerminate.add(close)
}

function forget(close: () => Promise<void>): void {
  if (onTerminate.delete(close) && onTerminate.size === 0) process.removeListener('SIGTERM', terminate)
}

/** Listened to until all is done: a signal that comes twice, as through npm, is not a wish to lose anything. */
function terminate(): void {
  isOthersToDecide ||= process.listenerCount('SIGTERM') > 1
  void Promise.allSettled(Array.from(onTerminate, (close) => close())).then(() => {
    if (isOthersToDecide || process.listenerCount('SIGTERM') > 0) return
    // As if nobody had listened.
    process.kill(process.pid, 'SIGTERM')
    setTimeout(() => process.exit(TERMINATED), IMMUNE_MS)
  })
}

/** The first process of a container does not die of its own signal: it ends with the status that stands for it. */
const TERMINATED = 128 + 15
const IMMUNE_MS = 100

/**
 * Node's HTTP server, except that it cuts nobody off. Node takes a connection for idle as soon as the whole response was
 * handed to it, and closes it even when a slow reader has most of that still to come.
 */
class PatientServer extends Server {
  readonly #sockets = new Set<Socket>()

  constructor(listener: RequestListener) {
    super(listener)
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
