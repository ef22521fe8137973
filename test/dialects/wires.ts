// A client that says exactly what a test wants it to say, in a session over each wire there is.
import { PassThrough } from 'node:stream'
import type { Rally } from 'mcp-rally'
import { serve, stdio } from 'mcp-rally/node'
import { Lines } from '../../src/protocol/lines.ts'
import type { SessionOptions } from '../legacy/raw.ts'
import { Events, initializeMessage, RawSession, send } from '../legacy/raw.ts'

export type Message = Record<string, unknown>

export interface Talk {
  /** The response to `initialize`. */
  readonly initialized: Message
  /** Says a request, and gives the response to it. */
  say(message: object): Promise<Message>
  /** Says what has no response. */
  tell(message: object): Promise<void>
  /** What came beside the responses, in order. */
  readonly told: Message[]
  close(): Promise<void>
}

export interface Wire {
  readonly name: string
  readonly open: (app: Rally, session: SessionOptions) => Promise<Talk>
}

const INITIALIZED = { jsonrpc: '2.0', method: 'notifications/initialized' }

const http: Wire = {
  name: 'HTTP',
  async open(app, session) {
    const { url, close } = await serve(app, { port: 0, drainMs: 100, handleSignals: false })
    const raw = await RawSession.open((init) => fetch(url, init), session)
    const told: Message[] = []
    return {
      initialized: raw.initialized as unknown as Message,
      told,
      say: (message) => sayOverHttp(raw, message, told),
      tell: async (message) => void (await raw.post(message)),
      close,
    }
  },
}

async function sayOverHttp(raw: RawSession, message: object, told: Message[]): Promise<Message> {
  const response = await raw.post(message)
  if (response.status === 202) return {}
  if (response.headers.get('content-type') !== 'text/event-stream') return (await response.json()) as Message
  const messages = (await new Events(response).rest()) as unknown as Message[]
  told.push(...messages.slice(0, -1))
  return messages.at(-1) ?? {}
}

const streams: Wire = {
  name: 'stdio',
  async open(app, session) {
    const input = new PassThrough()
    const output = new PassThrough()
    const served = stdio(app, { input, output })
    const told: Message[] = []
    const waiting = new Map<unknown, (message: Message) => void>()
    const lines = new Lines(
      1024 * 1024,
      (line) => {
        const message = JSON.parse(line) as Message
        const found = 'method' in message ? undefined : waiting.get(message['id'])
        if (found === undefined) told.push(message)
        else found(message)
      },
      () => {},
    )
    output.on('data', (chunk: Buffer) => lines.add(chunk))
    const write = (message: object): boolean => input.write(`${JSON.stringify(message)}\n`)
    const say = (message: object): Promise<Message> =>
      new Promise((resolve) => {
        waiting.set((message as Message)['id'], resolve)
        write(message)
      })
    const initialized = await say(initializeMessage(session))
    write(INITIALIZED)
    return {
      initialized,
      told,
      say,
      tell: async (message) => void write(message),
      close: async () => {
        input.end()
        await served
      },
    }
  },
}

export const wires: readonly Wire[] = [http, streams]

/** What `initialize` comes to, without going on. */
export async function handshake(app: Rally, session: SessionOptions): Promise<Message> {
  const response = await send(
    (init) => app.fetch(new Request('http://localhost/mcp', init)),
    initializeMessage(session),
  )
  return (await response.json()) as Message
}
