// The app of the contract suite behind every host, as a client sees it. Whatever a server sends is held against the
// specification here, so that no test has to.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { send } from 'mcp-rally'
import { serve, stdio } from 'mcp-rally/node'
import type { JSONRPCNotification, JSONRPCResponse, RequestId } from '../../src/protocol/messages.ts'
import { contractApp } from './app.mjs'
import { headersOf } from './messages.ts'
import { checkMessage } from './spec.ts'

type FromServer = JSONRPCNotification | JSONRPCResponse

export interface Answer {
  /** What came before the response, in order. */
  notifications: JSONRPCNotification[]
  /** None to a notification, and none to a call that was cancelled. */
  response: JSONRPCResponse | undefined
  /** These two over HTTP only. */
  status?: number
  contentType?: string | null
}

export interface Message {
  id?: RequestId
  method: string
}

export interface Wire {
  /** Aborting the signal cancels the request, in the way of this host. */
  send(message: Message, signal?: AbortSignal): Promise<Answer>
  close: () => Promise<void>
}

export interface Host {
  name: string
  isHttp: boolean
  open: () => Promise<Wire>
}

const memory: Host = {
  name: 'memory',
  isHttp: false,
  async open() {
    const app = contractApp()
    return {
      async send(message, signal) {
        const notifications: JSONRPCNotification[] = []
        const response = await send(app, message, {
          ...(signal && { signal }),
          onNotification: (notification) => notifications.push(notification),
        })
        return checked(message, { notifications, response })
      },
      close: async () => {},
    }
  },
}

const fetching: Host = {
  name: 'app.fetch',
  isHttp: true,
  async open() {
    const app = contractApp()
    return {
      send: (message, signal) =>
        exchange(message, (init) => app.fetch(new Request('http://localhost/mcp', init)), signal),
      close: async () => {},
    }
  },
}

const node: Host = {
  name: 'Node HTTP',
  isHttp: true,
  async open() {
    const { url, close } = await serve(contractApp(), { port: 0 })
    return { send: (message, signal) => exchange(message, (init) => fetch(url, init), signal), close }
  },
}

const streams: Host = {
  name: 'stdio',
  isHttp: false,
  async open() {
    const input = new PassThrough()
    const output = new PassThrough()
    const over = stdio(contractApp(), { input, output })
    const lines = new LineClient(input, output)
    return { send: (message, signal) => lines.send(message, signal), close: () => lines.close(over) }
  },
}

const ownProcess: Host = {
  name: 'stdio of a process of its own',
  isHttp: false,
  async open() {
    const child = spawn(process.execPath, [fileURLToPath(new URL('./process.mjs', import.meta.url))], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const exited = once(child, 'exit').then(([code]) => {
      if (code !== 0) throw new Error(`The process ended with ${String(code)}.`)
    })
    const lines = new LineClient(child.stdin, child.stdout)
    return { send: (message, signal) => lines.send(message, signal), close: () => lines.close(exited) }
  },
}

export const hosts: readonly Host[] = [memory, fetching, node, streams, ownProcess]

/** One request over HTTP, whichever way its response comes. */
async function exchange(
  message: Message,
  ask: (init: RequestInit) => Promise<Response>,
  signal: AbortSignal | undefined,
): Promise<Answer> {
  try {
    const response = await ask({
      method: 'POST',
      headers: headersOf(message),
      body: JSON.stringify(message),
      ...(signal && { signal }),
    })
    const contentType = response.headers.get('content-type')
    const text = await response.text()
    const messages = contentType === 'text/event-stream' ? eventsOf(text) : text === '' ? [] : [JSON.parse(text)]
    return { ...checked(message, toAnswer(messages)), status: response.status, contentType }
  } catch (error) {
    if (signal?.aborted) return { notifications: [], response: undefined }
    throw error
  }
}

/** The data of each server-sent event, written in the one form that these hosts use. */
export function eventsOf(text: string): FromServer[] {
  if (!text.endsWith('\n\n')) throw new Error(`The last event is not complete: ${text}`)
  return text
    .slice(0, -2)
    .split('\n\n')
    .map((event) => {
      const [, data] = /^event: message\ndata: (.*)$/.exec(event) ?? []
      if (data === undefined) throw new Error(`This is no event: ${event}`)
      return JSON.parse(data) as FromServer
    })
}

function toAnswer(messages: FromServer[]): Answer {
  const isNotification = (message: FromServer): message is JSONRPCNotification => 'method' in message
  const last = messages.at(-1)
  const response = last === undefined || isNotification(last) ? undefined : last
  const before = response === undefined ? messages : messages.slice(0, -1)
  if (!before.every(isNotification)) throw new Error(`Two responses to one request: ${JSON.stringify(messages)}`)
  return { notifications: before, response }
}

function checked<A extends Answer>(message: Message, answer: A): A {
  for (const notification of answer.notifications) checkMessage(notification, message.method)
  const { response } = answer
  if (response === undefined) return answer
  checkMessage(response, message.method)
  if (response.id !== message.id) throw new Error(`The response to ${message.id} says ${String(response.id)}`)
  return answer
}

interface UnderWay {
  notifications: JSONRPCNotification[]
  end(response: JSONRPCResponse | undefined): void
}

/** The client's side of a pair of streams. */
class LineClient {
  readonly #output: Writable
  readonly #underWay = new Map<RequestId, UnderWay>()
  readonly #strays: FromServer[] = []
  #rest = ''

  constructor(output: Writable, input: Readable) {
    this.#output = output
    input.setEncoding('utf8')
    input.on('data', (text: string) => {
      const lines = (this.#rest + text).split('\n')
      this.#rest = lines.pop() ?? ''
      for (const line of lines) this.#receive(JSON.parse(line) as FromServer)
    })
  }

  send(message: Message, signal?: AbortSignal): Promise<Answer> {
    const { id } = message
    const write = (line: object): void => void this.#output.write(`${JSON.stringify(line)}\n`)
    if (id === undefined) {
      write(message)
      return Promise.resolve({ notifications: [], response: undefined })
    }
    const answered = new Promise<Answer>((resolve) => {
      const notifications: JSONRPCNotification[] = []
      const end = (response: JSONRPCResponse | undefined): void => {
        this.#underWay.delete(id)
        resolve({ notifications, response })
      }
      this.#underWay.set(id, { notifications, end })
      signal?.addEventListener('abort', () => {
        write({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } })
        end(undefined)
      })
      write(message)
    })
    return answered.then((answer) => checked(message, answer))
  }

  /** Ends the input and waits until the server has taken notice. */
  async close(over: Promise<void>): Promise<void> {
    this.#output.end()
    await over
    if (this.#strays.length > 0) throw new Error(`Nobody waits for these: ${JSON.stringify(this.#strays)}`)
  }

  #receive(message: FromServer): void {
    if ('method' in message) {
      // A log message does not say whose it is, so each call under way is told.
      for (const { notifications } of this.#underWay.values()) notifications.push(message)
      return
    }
    const call = message.id === undefined ? undefined : this.#underWay.get(message.id)
    if (call === undefined) this.#strays.push(message)
    else call.end(message)
  }
}
