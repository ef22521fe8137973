// Connects to a server by its address, its command or an app in this process.
import { ByteBudget } from '../protocol/byte-buffer.ts'
import type { Logger } from '../protocol/logger.ts'
import { isLogger, toLogger } from '../protocol/logger.ts'
import { VERSION } from '../protocol/version.ts'
import { extensionsProblem } from '../protocol/extensions.ts'
import { shown } from '../protocol/text.ts'
import { capabilitiesOf, declaredCapabilities } from './capabilities.ts'
import { Client } from './client.ts'
import type { ServerCommand } from './transports/child.ts'
import { wrongOption } from './errors.ts'
import { HttpTransport } from './transports/http.ts'
import { fetchClient } from './transports/http-fetch.ts'
import type { Route } from './negotiate.ts'
import { negotiate } from './negotiate.ts'
import { Connection } from './connection.ts'
import { Lists } from './lists.ts'
import type { ConnectionLogin } from './oauth/index.ts'
import type { AppLike } from './transports/memory.ts'
import { MemoryTransport } from './transports/memory.ts'
import type { ClientOptions, Limits } from './options.ts'
import { DEFAULT_NAME, limitsOf } from './options.ts'
import { TaskRequests } from './tasks/requests.ts'
import { Tools } from './tools.ts'
import type { HttpClient } from './transports/http-client.ts'

/** The address of a server, the command that starts one, or an app in this process. */
export type ServerAddress = string | URL | ServerCommand | AppLike

/**
 * Connects to a server and negotiates the revision of the protocol.
 *
 * ```ts
 * const client = await connect('http://127.0.0.1:3000/mcp', { onElicit: ask })
 * const result = await client.callTool('deploy', { env: 'prod' })
 * await client.close()
 * ```
 *
 * With the type of the server, `connect<typeof app>(url)`, its tools are functions: `client.tools.deploy({ env: 'prod' })`.
 */
export async function connect<S = unknown>(server: ServerAddress, options: ClientOptions = {}): Promise<Client<S>> {
  const limits = limitsOf(options)
  const { name = DEFAULT_NAME, version = VERSION, can: byHand = [], onLog } = options
  const logger = limitLogRate(readLogger(options.logger))
  const can = capabilitiesOf(options, byHand)
  const extensions = readExtensions(options.extensions)
  const route = await routeTo(server, options, limits, logger)
  const identity = {
    info: { name, version },
    capabilities: { ...declaredCapabilities(can), ...(extensions !== undefined && { extensions }) },
    logLevel: options.logLevel ?? (onLog === undefined ? undefined : 'info'),
    logger,
  }
  const acceptsTasks = options.tasks ?? true
  // Loaded when it is used: most clients have none, and browsers load what is here.
  const observers =
    options.observers && (await import('./observer.ts')).readObservers(options.observers, server, logger)
  const connection: Connection = new Connection(
    {
      ...identity,
      acceptsTasks,
      onLog,
      onListChanged: (list) => lists.drop(list),
      onResourceChanged: (uri) => lists.reads.drop(uri),
      onClose: route.close,
      observers,
    },
    route.open,
  )
  const tools = new Tools(connection, logger)
  const lists = new Lists(connection, tools, logger, limits.maxResponseBytes)
  const tasks = acceptsTasks ? new TaskRequests(connection, limits.timeoutMs, logger) : undefined
  const answerers = { ...options }
  try {
    const { revision, signal } = options
    const session = { ...identity, can, answerers }
    const info = await negotiate({ connection, route, limits, revision, signal, session })
    const { callerKey } = route
    return new Client({ connection, tools, lists, tasks, limits, can, answerers, server: info, callerKey })
  } catch (error) {
    await connection.close()
    throw error
  }
}

function readLogger(logger: unknown = console): Logger {
  if (isLogger(logger)) return toLogger(logger)
  throw wrongOption(`logger must have the functions warn and error, got ${shown(logger)}.`)
}

function readExtensions(extensions: ClientOptions['extensions']): ClientOptions['extensions'] {
  const problem = extensions === undefined ? undefined : extensionsProblem(extensions)
  if (problem !== undefined) throw wrongOption(`extensions: ${problem}.`)
  return extensions
}

async function routeTo(server: ServerAddress, options: ClientOptions, limits: Limits, logger: Logger): Promise<Route> {
  if (typeof server === 'string' || server instanceof URL) return httpRoute(readUrl(server), options, limits)
  if (typeof server !== 'object' || server === null) throw wrongServer(server)
  if ('dispatch' in server) return { address: 'app', open: (receive) => new MemoryTransport(server, receive) }
  if (typeof server.command !== 'string') throw wrongServer(server)
  const { StdioTransport } = await import('#stdio-transport')
  let transport: InstanceType<typeof StdioTransport>
  return {
    address: server.command,
    open: (receive) => (transport = new StdioTransport(server, limits.maxResponseBytes, logger, receive)),
    openLegacy: ({ stdioChannel }, events) => stdioChannel(transport, events),
    exitReason: () => transport.exitReason,
    mayIgnoreProbe: true,
  }
}

async function httpRoute(
  url: URL,
  options: ClientOptions,
  { maxResponseBytes, maxBufferedBytes }: Limits,
): Promise<Route> {
  const { fetch, headers } = options
  const login = await loginFor(url, options)
  const clientFor = async (address: URL): Promise<HttpClient> => {
    const plain = fetch === undefined ? await platformClient(address) : fetchClient(address, fetch)
    return login === undefined ? plain : login.authorized(plain)
  }
  const http = await clientFor(url)
  const limits = { maxBytes: maxResponseBytes, budget: new ByteBudget(maxBufferedBytes) }
  const token = login?.token
  const callerKey = typeof headers === 'function' ? async () => JSON.stringify([await headers(), token?.()]) : token
  return {
    address: url.host,
    ...(callerKey !== undefined && { callerKey }),
    ...(login !== undefined && { close: login.close }),
    open: (receive) => new HttpTransport(http, { headers, limits }, receive),
    openLegacy: ({ HttpChannel }, events) => new HttpChannel(http, { headers, limits }, events),
    openSse: ({ SseChannel }, events) => new SseChannel({ url, http, clientFor, headers, limits }, events),
  }
}

async function loginFor(
  server: URL,
  { oauth, name = DEFAULT_NAME, fetch }: ClientOptions,
): Promise<ConnectionLogin | undefined> {
  if (oauth === undefined) return undefined
  const { openLogin } = await import('./oauth/index.ts')
  return openLogin({ server, oauth, name, fetch })
}

/** In Node it is Node's own, which is more than twice as fast as its fetch. `imports` of package.json says which one where. */
async function platformClient(url: URL): Promise<HttpClient> {
  try {
    const { platformHttpClient } = await import('#http-client')
    return platformHttpClient(url)
  } catch (cause) {
    if (typeof globalThis.fetch !== 'function') throw cause
    return fetchClient(url, (address, init) => globalThis.fetch(address, init))
  }
}

function wrongServer(server: unknown): Error {
  return wrongOption(`connect(): the server must be a URL, { command } or an app, got ${shown(server)}.`)
}

export function readUrl(server: string | URL): URL {
  const text = String(server)
  if (!URL.canParse(text)) {
    throw wrongOption(`connect(): the address must be a URL such as http://127.0.0.1:3000/mcp, got ${shown(text)}.`)
  }
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw wrongOption(`connect(): the address must begin with http: or https:, got ${shown(url.protocol)}.`)
  }
  if (url.username !== '' || url.password !== '') {
    throw wrongOption('connect(): the address must not contain a user name or password. Use the option headers.')
  }
  return url
}

const MAX_LOG_MESSAGES = 100
const LOG_WINDOW_MS = 60_000

/** A server cannot flood the log: messages beyond the limit of a minute are dropped, and the logger says so once. */
export function limitLogRate(logger: Logger): Logger {
  let count = 0
  let since = 0
  const mayLog = (): boolean => {
    const now = performance.now()
    if (since === 0 || now - since > LOG_WINDOW_MS) {
      since = now
      count = 0
    }
    count += 1
    if (count === MAX_LOG_MESSAGES) {
      logger.warn(`More than ${MAX_LOG_MESSAGES} log messages in a minute. The rest of this minute is dropped.`)
    }
    return count < MAX_LOG_MESSAGES
  }
  return {
    warn: (message, ...details) => {
      if (mayLog()) logger.warn(message, ...details)
    },
    error: (message, ...details) => {
      if (mayLog()) logger.error(message, ...details)
    },
  }
}
