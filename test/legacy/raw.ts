// A 2025-era client that says exactly what a test wants it to say, over HTTP.
import type { HttpOptions, Rally } from 'mcp-rally'
import { serve } from 'mcp-rally/node'
import { fetchHandler } from '../../src/hosts/fetch.ts'

export type Ask = (init: RequestInit) => Promise<Response>

export interface RawHost {
  readonly name: string
  readonly open: (
    app: Rally,
    options?: HttpOptions & { drainMs?: number },
  ) => Promise<{ ask: Ask; close: () => Promise<void> }>
}

export const hosts: readonly RawHost[] = [
  {
    name: 'Node HTTP',
    async open(app, options) {
      const { url, close } = await serve(app, { port: 0, drainMs: 100, ...options, handleSignals: false })
      return { ask: (init) => fetch(url, init), close }
    },
  },
  {
    name: 'app.fetch',
    async open(app, options) {
      const handle = fetchHandler(app, options)
      return { ask: (init) => handle(new Request('http://localhost/mcp', init)), close: async () => {} }
    },
  },
]

export interface Wired {
  jsonrpc: '2.0'
  id?: string | number
  method?: string
  params?: Record<string, unknown>
  result?: Record<string, unknown>
  error?: { code: number; message: string; data?: unknown }
}

export interface SessionOptions {
  revision?: string
  capabilities?: object
  headers?: Record<string, string>
}

export const ALL = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }

export function initializeMessage({ revision = '2025-11-25', capabilities = ALL }: SessionOptions = {}): object {
  const clientInfo = { name: 'raw', version: '1.0.0' }
  return {
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: { protocolVersion: revision, capabilities, clientInfo },
  }
}

const BOTH = 'application/json, text/event-stream'

/** One session, or what a client takes for one. */
export class RawSession {
  readonly id: string
  readonly initialized: Wired
  readonly #ask: Ask
  readonly #headers: Record<string, string>
  #next = 1

  constructor(ask: Ask, id: string, headers: Record<string, string> = {}, initialized: Wired = { jsonrpc: '2.0' }) {
    this.#ask = ask
    this.id = id
    this.#headers = headers
    this.initialized = initialized
  }

  static async open(ask: Ask, options: SessionOptions = {}): Promise<RawSession> {
    const response = await send(ask, initializeMessage(options), options.headers)
    const initialized = (await response.json()) as Wired
    const session = new RawSession(ask, response.headers.get('mcp-session-id') ?? '', options.headers, initialized)
    const { status } = await session.post({ jsonrpc: '2.0', method: 'notifications/initialized' })
    if (status !== 202) throw new Error(`The session did not begin: ${status}`)
    return session
  }

  /** The same session elsewhere. */
  at(ask: Ask): RawSession {
    return new RawSession(ask, this.id, this.#headers)
  }

  post(message: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return send(this.#ask, message, { 'Mcp-Session-Id': this.id, ...this.#headers, ...headers })
  }

  request(method: string, params?: object, headers?: Record<string, string>): Promise<Response> {
    const id = this.#next
    this.#next += 1
    return this.post({ jsonrpc: '2.0', id, method, params }, headers)
  }

  /** A request that is answered by JSON. */
  async json(method: string, params?: object): Promise<Wired> {
    return (await (await this.request(method, params)).json()) as Wired
  }

  call(name: string, args: object = {}, headers?: Record<string, string>): Promise<Response> {
    return this.request('tools/call', { name, arguments: args }, headers)
  }

  answer(question: Wired | undefined, result: object): Promise<Response> {
    return this.post({ jsonrpc: '2.0', id: question?.id, result })
  }

  get(headers: Record<string, string> = {}, signal?: AbortSignal): Promise<Response> {
    const all = { Accept: 'text/event-stream', 'Mcp-Session-Id': this.id, ...this.#headers, ...headers }
    return this.#ask({ method: 'GET', headers: all, ...(signal && { signal }) })
  }
}

export function send(ask: Ask, message: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const all = { 'Content-Type': 'application/json', Accept: BOTH, ...headers }
  return ask({ method: 'POST', headers: all, body: JSON.stringify(message) })
}

export interface RawEvent {
  id?: string
  retry?: string
  data?: string
}

/** The events of a response, one at a time. */
export class Events {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #decoder = new TextDecoder()
  #text = ''
  /** The id of the last one. */
  lastId = ''

  constructor(response: Response) {
    const type = response.headers.get('content-type')
    if (type !== 'text/event-stream' || response.body === null) throw new Error(`There are no events, but ${type}.`)
    this.#reader = response.body.getReader() as ReadableStreamDefaultReader<Uint8Array>
  }

  /** `undefined` at the end. */
  async next(): Promise<RawEvent | undefined> {
    for (;;) {
      const end = this.#text.indexOf('\n\n')
      if (end !== -1) {
        const event = parse(this.#text.slice(0, end))
        this.#text = this.#text.slice(end + 2)
        if (event === undefined) continue
        this.lastId = event.id ?? this.lastId
        return event
      }
      const { done, value } = await this.#reader.read()
      if (done) return undefined
      this.#text += this.#decoder.decode(value, { stream: true })
    }
  }

  /** The next event that has a message. */
  async message(): Promise<Wired | undefined> {
    for (let event = await this.next(); event !== undefined; event = await this.next()) {
      if (event.data) return JSON.parse(event.data) as Wired
    }
    return undefined
  }

  /** All messages to the end. */
  async rest(): Promise<Wired[]> {
    const messages: Wired[] = []
    for (let message = await this.message(); message !== undefined; message = await this.message()) {
      messages.push(message)
    }
    return messages
  }

  /** As if the connection was lost. */
  lose(): Promise<void> {
    return this.#reader.cancel()
  }
}

function parse(text: string): RawEvent | undefined {
  const lines = text.split('\n').filter((line) => !line.startsWith(':'))
  if (lines.length === 0) return undefined
  return Object.fromEntries(lines.map((line) => /^(\w+): ?(.*)$/.exec(line)?.slice(1) ?? []))
}

export function textOf(message: Wired | undefined): string {
  const { content = [] } = (message?.result ?? {}) as { content?: { text?: string }[] }
  return content.map(({ text }) => text).join('\n')
}
