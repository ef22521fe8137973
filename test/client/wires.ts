// A client connected to the test app in each way there is.
import { fileURLToPath } from 'node:url'
import type { CallToolResult, Client, ClientOptions } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { serve } from 'mcp-rally/node'
import type { Hold } from './app.mjs'
import { testApp } from './app.mjs'

export const SERVER = fileURLToPath(new URL('./server.mjs', import.meta.url))

export interface Connected {
  readonly client: Client
  readonly close: () => Promise<void>
}

export interface WireOptions extends ClientOptions {
  /** Not over stdio, where the app is in another process. */
  hold?: Hold
}

export interface Wire {
  readonly name: string
  readonly isHttp: boolean
  connect(options?: WireOptions): Promise<Connected>
}

const memory: Wire = {
  name: 'memory',
  isHttp: false,
  async connect({ hold, ...options } = {}) {
    const client = await connect(testApp({}, hold), options)
    return { client, close: () => client.close() }
  },
}

const http: Wire = {
  name: 'HTTP',
  isHttp: true,
  async connect({ hold, ...options } = {}) {
    const serving = await serve(testApp({}, hold), { port: 0, handleSignals: false })
    const client = await connect(serving.url, options)
    return { client, close: () => closeBoth(client, serving) }
  },
}

const fetched: Wire = {
  name: 'fetch',
  isHttp: true,
  async connect({ hold, ...options } = {}) {
    const serving = await serve(testApp({}, hold), { port: 0, handleSignals: false })
    const client = await connect(serving.url, { ...options, fetch: (url, init) => fetch(url, init) })
    return { client, close: () => closeBoth(client, serving) }
  },
}

const handler: Wire = {
  name: 'app.fetch',
  isHttp: true,
  async connect({ hold, ...options } = {}) {
    const app = testApp({}, hold)
    const client = await connect('http://localhost/mcp', {
      ...options,
      fetch: (url, init) => app.fetch(new Request(url, init)),
    })
    return { client, close: () => client.close() }
  },
}

const stdio: Wire = {
  name: 'stdio',
  isHttp: false,
  async connect({ hold: _hold, ...options } = {}) {
    const client = await connect({ command: process.execPath, args: [SERVER, '--stdio'] }, options)
    return { client, close: () => client.close() }
  },
}

export const wires: readonly Wire[] = [memory, http, fetched, handler, stdio]
export const inMemory = memory
export const inProcess: readonly Wire[] = [memory, http, fetched, handler]

async function closeBoth(client: Client, serving: { close(): Promise<void> }): Promise<void> {
  await client.close()
  await serving.close()
}

/** The text of a result's first block. */
export function textOf({ content: [block] }: Pick<CallToolResult, 'content'>): string | undefined {
  return block?.type === 'text' ? block.text : undefined
}
