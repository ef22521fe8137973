// From an address, a command or an app to a client that has been introduced to its server.
import type { Logger } from '../protocol/logger.ts'
import { VERSION } from '../protocol/version.ts'
import { capabilitiesOf, declared } from './capabilities.ts'
import { Client } from './client.ts'
import type { ServerCommand } from './transports/child.ts'
import { wrongOption } from './errors.ts'
import { HttpTransport } from './transports/http.ts'
import { fetchClient } from './transports/http-fetch.ts'
import type { Route } from './negotiate.ts'
import { negotiate } from './negotiate.ts'
import { Connection } from './connection.ts'
import { Lists } from './lists.ts'
import type { AppLike } from './transports/memory.ts'
import { MemoryTransport } from './transports/memory.ts'
import type { ClientOptions, Limits } from './options.ts'
import { limitsOf } from './options.ts'
import { limitLogRate } from './sparing.ts'
import { TaskRequests } from './tasks/requests.ts'
import { Tools } from './tools.ts'
import type { HttpClient } from './transports/http-client.ts'

/** The address of a server, the command that starts one, or an app in this process. */
export type ServerAddress = string | URL | ServerCommand | AppLike

/** Connects to a server, and asks it who it is. */
export async function connect(server: ServerAddress, options: ClientOptions = {}): Promise<Client> {
  const limits = limitsOf(options)
  const { name = 'mcp-rally', version = VERSION, can: byHand = [], onLog } = options
  const logger = limitLogRate(options.logger ?? console)
  const can = capabilitiesOf(options, byHand)
  const route = await routeTo(server, options, limits, logger)
  const us = {
    info: { name, version },
    capabilities: declared(can),
    logLevel: options.logLevel ?? (onLog === undefined ? undefined : 'info'),
    logger,
  }
  const acceptsTasks = options.tasks ?? true
  const connection: Connection = new Connection(
    { ...us, acceptsTasks, onLog, onListChanged: (list) => lists.drop(list) },
    route.open,
  )
  const tools = new Tools(connection, logger)
  const lists = new Lists(connection, tools, logger, limits.maxResponseBytes)
  const tasks = acceptsTasks ? new TaskRequests(connection, limits.timeoutMs, logger) : undefined
  const answerers = { ...options }
  try {
    const { revision, signal } = options
    const introducing = { connection, route, limits, revision, signal, session: { ...us, can, answerers } }
    return new Client({ connection, tools, lists, tasks, limits, can, answerers, server: await negotiate(introducing) })
  } catch (error) {
    await connection.close()
    throw error
  }
}

async function routeTo(server: ServerAddress, options: ClientOptions, limits: Limits, logger: Logger): Promise<Route> {
  if (typeof server === 'string' || server instanceof URL) return httpRoute(readUrl(server), options, limits)
  if (typeof server !== 'object' || server === null) throw wrongServer()
  if ('dispatch' in server) return { address: 'app', open: (receive) => new MemoryTransport(server, receive) }
  if (typeof server.command !== 'string') throw wrongServer()
  const { StdioTransport } = await import('./transports/stdio.ts')
  let transport: InstanceType<typeof StdioTransport>
  return {
    address: server.command,
    open: (receive) => (transport = new StdioTransport(server, limits.maxResponseBytes, logger, receive)),
    openLegacy: ({ stdioChannel }, events) => stdioChannel(transport, events),
    mayIgnoreProbe: true,
  }
}

async function httpRoute(url: URL, options: ClientOptions, { maxResponseBytes }: Limits): Promise<Route> {
  const http = options.fetch === undefined ? await platformClient(url) : fetchClient(url, options.fetch)
  const { headers } = options
  return {
    address: url.host,
    open: (receive) => new HttpTransport(http, { headers, maxResponseBytes }, receive),
    openLegacy: ({ HttpChannel }, events) => new HttpChannel(http, { headers, maxResponseBytes }, events),
  }
}

/** Node's own client is more than twice as fast as its fetch. */
async function platformClient(url: URL): Promise<HttpClient> {
  try {
    const { nodeClient } = await import('./transports/http-node.ts')
    return nodeClient(url)
  } catch (cause) {
    if (typeof globalThis.fetch !== 'function') throw cause
    return fetchClient(url, (address, init) => globalThis.fetch(address, init))
  }
}

function wrongServer(): Error {
  return wrongOption('connect takes the address of a server, { command } that starts one, or an app.')
}

function readUrl(server: string | URL): URL {
  const text = String(server)
  if (!URL.canParse(text))
    throw wrongOption(`${JSON.stringify(text)} is no address, such as http://127.0.0.1:3000/mcp.`)
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw wrongOption(`The address of a server begins with http: or https:, not ${url.protocol}`)
  }
  if (url.username !== '' || url.password !== '') {
    throw wrongOption('Put a name and password into the option headers, not into the address.')
  }
  return url
}
