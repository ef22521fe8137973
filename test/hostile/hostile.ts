// A client at a hostile server, which is a process of its own, and what a call may cost the client.
import { fileURLToPath } from 'node:url'
import type { CallToolResult, Client, ClientOptions } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { Child } from '../interop/child.ts'

const SERVER = fileURLToPath(new URL('./server.mjs', import.meta.url))

export interface Wire {
  readonly name: string
  connect(options?: ClientOptions, mode?: string): Promise<Client>
}

/** Says yes to everything, and declares everything. */
const agreeable: ClientOptions = {
  onElicit: ({ form }) => ({ action: 'accept', content: 'yes' in form.properties ? { yes: true } : {} }),
  onVisit: () => ({ action: 'accept' }),
  onSample: () => ({ role: 'assistant', model: 'a-model', content: { type: 'text', text: 'yes' } }),
  onRoots: () => [],
  logger: { warn: () => {}, error: () => {} },
}

/** Wires to a hostile server that lasts as long as the tests of the file, each client as long as its test. */
export function hostileWires(): { http: Wire; fetched: Wire; stdio: Wire } {
  const clients = new Set<Client>()
  let child: Child
  let url = ''
  beforeAll(async () => {
    child = new Child(process.execPath, [SERVER])
    const [, address = ''] = await child.printed.match(/listening on (\S+)/)
    url = address
  })
  afterEach(async () => {
    await Promise.all(Array.from(clients, (client) => client.close()))
    clients.clear()
  })
  afterAll(() => child.kill())
  const kept = async (connecting: Promise<Client>): Promise<Client> => {
    const client = await connecting
    clients.add(client)
    return client
  }
  const http: Wire = {
    name: 'HTTP',
    connect: (options, mode) => kept(connect(`${url}?mode=${mode ?? ''}`, { ...agreeable, ...options })),
  }
  const fetched: Wire = {
    name: 'fetch',
    connect: (options, mode) => http.connect({ fetch: (address, init) => fetch(address, init), ...options }, mode),
  }
  const stdio: Wire = {
    name: 'stdio',
    connect: (options, mode = '') =>
      kept(connect({ command: process.execPath, args: [SERVER, '--stdio', mode] }, { ...agreeable, ...options })),
  }
  return { http, fetched, stdio }
}

/** What a call failed with; that it did is part of the test. */
export async function failureOf(call: Promise<unknown>): Promise<{ code: unknown; message: string }> {
  const error = await call.then(
    (value) => {
      throw new Error(`It did not fail, and gave ${JSON.stringify(value).slice(0, 200)}`)
    },
    (reason: unknown) => reason as Error & { code: unknown },
  )
  // For people, however much the server said.
  expect(error.message.length).toBeLessThan(LONGEST_MESSAGE)
  return { code: error.code, message: error.message }
}

const LONGEST_MESSAGE = 10_000

/** After whatever happened, the same client is good for the next call. */
export async function expectUsable(client: Client): Promise<void> {
  expect(textOf(await client.callTool('ping'))).toBe('pong')
}

export function textOf({ content: [block] }: CallToolResult): string | undefined {
  return block?.type === 'text' ? block.text : undefined
}

/** By how many megabytes this process grew at most while something ran. */
export async function growthDuring(run: () => Promise<unknown>): Promise<number> {
  globalThis.gc?.()
  const before = used()
  let most = before
  const timer = setInterval(() => {
    most = Math.max(most, used())
  }, 5)
  try {
    await run()
  } finally {
    clearInterval(timer)
  }
  return (Math.max(most, used()) - before) / 1_000_000
}

function used(): number {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
