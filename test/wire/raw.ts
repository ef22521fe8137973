// Three ways into an app that take whatever bytes they are given, and hold every answer against the specification.
import { PassThrough } from 'node:stream'
import type { App } from 'mcp-rally'
import { serve, stdio } from 'mcp-rally/node'
import type { JSONRPCErrorObject, RequestId } from '../../src/protocol/messages.ts'
import { errorOf, headersOf, request } from './messages.ts'
import { checkMessage } from './spec.ts'

export interface RawAnswer {
  /** None over stdio. */
  status: number | undefined
  /** The response; `undefined` where none came. */
  message: RawMessage | undefined
}

export interface RawMessage {
  id?: RequestId
  result?: Record<string, unknown>
  error?: JSONRPCErrorObject
}

export interface RawWire {
  name: string
  /** Whether it takes text at all, or only what was parsed already. */
  takesText: boolean
  send(body: string | Uint8Array, options?: SendRaw): Promise<RawAnswer>
  close(): Promise<void>
}

export interface SendRaw {
  /** The headers, where there are any. Default: those that go with the body. */
  headers?: Record<string, string>
  /** How many bytes travel together. Default: all. */
  chunk?: number
}

export const rawWires: readonly { name: string; takesText: boolean; open: (app: App) => Promise<RawWire> }[] = [
  { name: 'dispatch', takesText: false, open: async (app) => dispatching(app) },
  { name: 'Node HTTP', takesText: true, open: overHttp },
  { name: 'stdio', takesText: true, open: async (app) => new StdioWire(app) },
]

function dispatching(app: App): RawWire {
  return {
    name: 'dispatch',
    takesText: false,
    async send(body) {
      const message: unknown = JSON.parse(textOf(body))
      const reply = await app.dispatch(message)
      return checked(reply?.status, reply?.text, message)
    },
    close: async () => {},
  }
}

async function overHttp(app: App): Promise<RawWire> {
  const { url, close } = await serve(app, { port: 0 })
  return {
    name: 'Node HTTP',
    takesText: true,
    async send(body, { headers, chunk } = {}) {
      const message = parsed(body)
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...BARE_HEADERS, ...(headers ?? headersOf(message)) },
        ...(chunk === undefined ? { body } : { body: streamOf(body, chunk), duplex: 'half' }),
      })
      const text = await response.text()
      return checked(response.status, text === '' ? undefined : text, message)
    },
    close,
  }
}

const BARE_HEADERS = headersOf({ method: 'tools/call', params: { name: 'echo' } })

class StdioWire implements RawWire {
  readonly name = 'stdio'
  readonly takesText = true
  readonly #input = new PassThrough()
  readonly #over: Promise<void>
  readonly #received: string[] = []
  #wake: (() => void) | undefined
  #rest = ''

  constructor(app: App) {
    const output = new PassThrough({ encoding: 'utf8' })
    this.#over = stdio(app, { input: this.#input, output })
    output.on('data', (text: string) => {
      const lines = (this.#rest + text).split('\n')
      this.#rest = lines.pop() ?? ''
      this.#received.push(...lines)
      this.#wake?.()
    })
  }

  async send(body: string | Uint8Array, { chunk }: SendRaw = {}): Promise<RawAnswer> {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    for (let from = 0; from < bytes.length; from += chunk ?? bytes.length) {
      this.#input.write(bytes.subarray(from, from + (chunk ?? bytes.length)))
    }
    this.#input.write('\n')
    const message = parsed(body)
    // What gets no answer is followed by what does.
    const next = isNotification(message) ? request('after/it') : undefined
    if (next !== undefined) this.#input.write(`${JSON.stringify(next)}\n`)
    const answer = checked(undefined, await this.#line(), message)
    if (next === undefined) return answer
    if (errorOf(answer.message).code !== -32601) throw new Error('A notification was answered.')
    return { status: undefined, message: undefined }
  }

  async close(): Promise<void> {
    this.#input.end()
    await this.#over
    if (this.#received.length > 0) throw new Error(`Nobody waits for these: ${this.#received.join('\n')}`)
  }

  async #line(): Promise<string> {
    while (this.#received.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return this.#received.shift() ?? ''
  }
}

/** A JSON-RPC message that gets no answer. */
export function isNotification(message: unknown): boolean {
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return false
  const { jsonrpc, id, method, params } = message as Record<string, unknown>
  const fits = params === undefined || (typeof params === 'object' && params !== null && !Array.isArray(params))
  return jsonrpc === '2.0' && typeof method === 'string' && id === undefined && fits
}

function checked(status: number | undefined, text: string | undefined, sent: unknown): RawAnswer {
  if (text === undefined) return { status, message: undefined }
  const message = JSON.parse(text) as RawMessage
  checkMessage(message, typeof sent === 'object' && sent !== null ? Reflect.get(sent, 'method') : undefined)
  return { status, message }
}

/** What the bytes say as JSON; `undefined` where that is nothing. */
export function parsed(body: string | Uint8Array): unknown {
  try {
    return JSON.parse(textOf(body))
  } catch {
    return undefined
  }
}

function textOf(body: string | Uint8Array): string {
  return typeof body === 'string' ? body : Buffer.from(body).toString('utf8')
}

function streamOf(body: string | Uint8Array, chunk: number): ReadableStream<Uint8Array> {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  let from = 0
  return new ReadableStream({
    pull(controller) {
      if (from >= bytes.length) return controller.close()
      controller.enqueue(bytes.subarray(from, from + chunk))
      from += chunk
    },
  })
}
