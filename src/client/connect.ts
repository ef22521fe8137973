// From an address, a command or an app to a client that has been introduced to its server.
import type { Logger } from '../protocol/logger.ts'
import { capabilitiesOf, declared } from './capabilities.ts'
import { Client } from './client.ts'
import type { ServerCommand } from './transports/child.ts'
import { wrongOption } from './errors.ts'
import { HttpTransport } from './transports/http.ts'
import { fetchWire } from './transports/http-fetch.ts'
import type { Route } from './negotiate.ts'
import { introduce } from './negotiate.ts'
import { Link } from './link.ts'
import { Lists } from './lists.ts'
import type { AppLike } from './transports/memory.ts'
import { MemoryTransport } from './transports/memory.ts'
import type { ClientOptions, Limits } from './options.ts'
import { limitsOf } from './options.ts'
import { sparing } from './sparing.ts'
import { TaskWire } from './tasks/wire.ts'
import { Tools } from './tools.ts'
import type { Wire } from './transports/wire.ts'

/** The address of a server, the command that starts one, or an app in this process. */
export type ServerAddress = string | URL | ServerCommand | AppLike

const VERSION = '0.1.0'

/** Connects to a server, and asks it who it is. */
export async function connect(server: ServerAddress, options: ClientOptions = {}): Promise<Client> {
  const limits = limitsOf(options)
  const { name = 'mcp-rally', version = VERSION, can: byHand = [], onLog } = options
  const logger = sparing(options.logger ?? console)
  const can = capabilitiesOf(options, byHand)
  const way = await wayTo(server, options, limits, logger)
  const us = {
    info: { name, version },
    capabilities: declared(can),
    logLevel: options.logLevel ?? (onLog === undefined ? undefined : 'info'),
    logger,
  }
  const takesTasks = options.tasks ?? true
  const link: Link = new Link({ ...us, takesTasks, onLog, onListChanged: (list) => lists.drop(list) }, way.open)
  const tools = new Tools(link, logger)
  const lists = new Lists(link, tools, logger, limits.maxResponseBytes)
  const tasks = takesTasks ? new TaskWire(link, limits.timeoutMs, logger) : undefined
  const answerers = { ...options }
  try {
    const { revision, signal } = options
    const introducing = { link, way, limits, revision, signal, session: { ...us, can, answerers } }
    return new Client({ link, tools, lists, tasks, limits, can, answerers, server: await introduce(introducing) })
  } catch (error) {
    await link.close()
    throw error
  }
}

async function wayTo(server: ServerAddress, options: ClientOptions, limits: Limits, logger: Logger): Promise<Route> {
  if (typeof server === 'string' || server instanceof URL) return wayOverHttp(readUrl(server), options, limits)
  if (typeof server !== 'object' || server === null) throw wrongServer()
  if ('dispatch' in server) return { address: 'app', open: (receive) => new MemoryTransport(server, receive) }
  if (typeof server.command !== 'string') throw wrongServer()
  const { StdioTransport } = await import('./transports/stdio.ts')
  let transport: InstanceType<typeof StdioTransport>
  return {
    address: server.command,
    open: (receive) => (transport = new StdioTransport(server, limits.maxResponseBytes, logger, receive)),
    older: ({ stdioChannel }, events) => stdioChannel(transport, events),
    mayBeSilent: true,
  }
}

async function wayOverHttp(url: URL, options: ClientOptions, { maxResponseBytes }: Limits): Promise<Route> {
  const wire = options.fetch === undefined ? await platformWire(url) : fetchWire(url, options.fetch)
  const { headers } = options
  return {
    address: url.host,
    open: (receive) => new HttpTransport(wire, { headers, maxResponseBytes }, receive),
    older: ({ HttpChannel }, events) => new HttpChannel(wire, { headers, maxResponseBytes }, events),
  }
}

/** Node's own client is more than twice as fast as its fetch. */
async function platformWire(url: URL): Promise<Wire> {
  try {
    const { nodeWire } = await import('./transports/http-node.ts')
    return nodeWire(url)
  } catch (cause) {
    if (typeof globalThis.fetch !== 'function') throw cause
    return fetchWire(url, (address, init) => globalThis.fetch(address, init))
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
