// An HTTP server of the 2025 era that does just as a test tells it to, wrong or right.
import { once } from 'node:events'
import type { IncomingHttpHeaders, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Client, ClientOptions } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { vi } from 'vitest'
import { json } from './raw-server.ts'

export interface Seen {
  /** Of HTTP. */
  readonly verb: string
  readonly headers: IncomingHttpHeaders
  /** Empty, where there was none. */
  readonly message: Message
}

export interface Message {
  readonly id?: number | string
  readonly method?: string
  readonly params?: Record<string, unknown>
  readonly result?: Record<string, unknown>
  readonly error?: { readonly code: number; readonly message: string }
}

/** By the method of the message, or of HTTP where there is none; `answer` is a response to one of its own requests. */
export type Script = Readonly<Record<string, Serve>>
export type Serve = (response: ServerResponse, seen: Seen, server: OlderServer) => void

const INITIALIZED = {
  protocolVersion: '2025-11-25',
  capabilities: {
    tools: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    prompts: { listChanged: true },
  },
  serverInfo: { name: 'raw', version: '1' },
}

/** Answers `initialize` with this, and gives the n-th session the id `s<n>`. */
export function initialized(more: object = {}, hasSession = true): Serve {
  return (response, { message }, server) => {
    server.sessions += 1
    if (hasSession) response.setHeader('Mcp-Session-Id', `s${server.sessions}`)
    json(response, { id: message.id, result: { ...INITIALIZED, ...more } })
  }
}

const DEFAULTS: Script = {
  'server/discover': (response) => void response.writeHead(400).end('What?'),
  initialize: initialized(),
  GET: (response) => void response.writeHead(405).end(),
  DELETE: (response) => void response.writeHead(200).end(),
  answer: (response) => void response.writeHead(202).end(),
  'resources/subscribe': (response, { message }) => json(response, { id: message.id, result: {} }),
}

export class OlderServer {
  readonly seen: Seen[] = []
  sessions = 0
  /** Streams that were not ended yet, by what they belong to. */
  readonly streams = new Map<string, ServerResponse>()
  readonly #server: Server

  constructor(script: Script) {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => void chunks.push(chunk))
      request.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        const { method: verb = '', headers } = request
        const seen = { verb, headers, message: text === '' ? {} : (JSON.parse(text) as Message) }
        this.seen.push(seen)
        const what = verb === 'POST' ? (seen.message.method ?? 'answer') : verb
        const serve = script[what] ?? DEFAULTS[what]
        if (serve !== undefined) serve(response, seen, this)
        else response.writeHead(202).end()
      })
    })
  }

  /** What was seen of a method, of HTTP or of a message. */
  of(method: string): Seen[] {
    return this.seen.filter(({ verb, message }) => verb === method || message.method === method)
  }

  /** The responses that the client gave. */
  get answers(): Message[] {
    return this.seen.map(({ message }) => message).filter(({ result, error }) => (result ?? error) !== undefined)
  }

  /** Resolves once so many of them were seen. */
  async waitFor(method: string, count = 1): Promise<Seen[]> {
    return vi.waitFor(
      () => {
        const seen = this.of(method)
        if (seen.length < count) throw new Error(`${method} was seen ${seen.length} times.`)
        return seen
      },
      { timeout: 5_000, interval: 5 },
    )
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/mcp`
  }

  async close(): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close')
  }
}

export interface OlderConnection {
  readonly client: Client
  readonly server: OlderServer
}

const QUIET = { warn: () => {}, error: () => {} }
const closing: (() => Promise<void>)[] = []

export async function olderConnection(script: Script, options: ClientOptions = {}): Promise<OlderConnection> {
  const server = new OlderServer(script)
  closing.push(() => server.close())
  const client = await connect(await server.listen(), { logger: QUIET, ...options })
  closing.push(() => client.close())
  return { client, server }
}

/** Only the server: connecting is what the test is about. */
export async function olderServer(script: Script): Promise<{ url: string; server: OlderServer }> {
  const server = new OlderServer(script)
  closing.push(() => server.close())
  return { url: await server.listen(), server }
}

/** The last one first, so that clients go before their servers. */
export async function closeAll(): Promise<void> {
  for (let close = closing.pop(); close !== undefined; close = closing.pop()) await close()
}

export const text = (said: string): object => ({ content: [{ type: 'text', text: said }] })

/** An event, with an id and a pause to be left for, where they are given. */
export function event(more: object | undefined, id?: string, retry?: number): string {
  const data = more === undefined ? '' : JSON.stringify({ jsonrpc: '2.0', ...more })
  return `${id === undefined ? '' : `id: ${id}\n`}${retry === undefined ? '' : `retry: ${retry}\n`}data: ${data}\n\n`
}

export const form = (id: number | string, message = 'Sure?'): object => ({
  id,
  method: 'elicitation/create',
  params: { message, requestedSchema: { type: 'object', properties: { yes: { type: 'boolean' } } } },
})

/** Begins the stream of a call, and leaves it open. */
export function stream(response: ServerResponse, ...pieces: readonly string[]): void {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' })
  response.flushHeaders()
  for (const piece of pieces) response.write(piece)
}
