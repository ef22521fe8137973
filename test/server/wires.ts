// Any app behind every host, as a client sees it: a message goes in, and what comes of it is taken one message at a time.
// Whatever a server sends is held against the specification here, so that no test has to.
import { PassThrough } from 'node:stream'
import type { HttpOptions, Rally } from 'mcp-rally'
import { send } from 'mcp-rally'
import { fetchHandler } from '../../src/hosts/fetch.ts'
import { serve, stdio } from 'mcp-rally/node'
import type { JSONRPCMessage, JSONRPCNotification, JSONRPCResponse, RequestId } from '../../src/protocol/messages.ts'
import { META_SUBSCRIPTION } from '../../src/protocol/revisions/2026-07-28.ts'
import type { WireRequest } from '../wire/messages.ts'
import { encoded, headersOf } from '../wire/messages.ts'
import { checkMessage } from './spec.ts'

export interface Wire {
  open(message: WireRequest, headers?: Readonly<Record<string, string>>): Exchange
  close(): Promise<void>
}

export interface Host {
  readonly name: string
  readonly isHttp: boolean
  readonly open: (app: Rally, options?: HttpOptions) => Promise<Wire>
}

export interface Answer {
  /** What came before the response, in order. */
  notifications: JSONRPCNotification[]
  response: JSONRPCResponse | undefined
  status: number | undefined
}

/** One request under way. */
export class Exchange {
  /** Over HTTP only, and known with the first message. */
  status: number | undefined
  contentType: string | null = null
  /** Comments on the event stream. */
  comments = 0
  readonly #method: string
  readonly #waiting: JSONRPCMessage[] = []
  readonly #cancel: () => void
  #over = false
  #failure: unknown
  #wake: () => void = () => {}

  constructor(method: string, cancel: () => void) {
    this.#method = method
    this.#cancel = cancel
  }

  /** The next message; `undefined` when no more will come. */
  async next(): Promise<JSONRPCMessage | undefined> {
    while (this.#waiting.length === 0 && !this.#over) await this.changed()
    const message = this.#waiting.shift()
    if (message === undefined && this.#failure !== undefined) throw this.#failure
    return message
  }

  async answer(): Promise<Answer> {
    const notifications: JSONRPCNotification[] = []
    for (let message = await this.next(); message !== undefined; message = await this.next()) {
      if (!('method' in message)) return { notifications, response: message, status: this.status }
      notifications.push(message as JSONRPCNotification)
    }
    return { notifications, response: undefined, status: this.status }
  }

  /** In the way of the host. */
  cancel(): void {
    this.#cancel()
  }

  /** Something came, whatever it is. */
  changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  received(message: JSONRPCMessage): void {
    try {
      checkMessage(message, this.#method)
    } catch (error) {
      return this.ended(error)
    }
    this.#waiting.push(message)
    this.#wake()
  }

  commented(): void {
    this.comments += 1
    this.#wake()
  }

  ended(failure?: unknown): void {
    this.#over = true
    this.#failure ??= failure
    this.#wake()
  }
}

const memory: Host = {
  name: 'memory',
  isHttp: false,
  async open(app) {
    return {
      open(message) {
        const cancelling = new AbortController()
        const exchange = new Exchange(message.method, () => cancelling.abort())
        void send(app, message, {
          signal: cancelling.signal,
          onNotification: (notification) => exchange.received(notification),
        }).then((response) => {
          if (response !== undefined) exchange.received(response)
          exchange.ended()
        }, exchange.ended.bind(exchange))
        return exchange
      },
      close: async () => {},
    }
  },
}

const fetching: Host = {
  name: 'app.fetch',
  isHttp: true,
  async open(app, options) {
    const handler = fetchHandler(app, options)
    return httpWire((init) => handler(new Request('http://localhost/mcp', init)))
  },
}

const node: Host = {
  name: 'Node HTTP',
  isHttp: true,
  async open(app, options) {
    const { url, server, close } = await serve(app, { port: 0, ...options })
    return {
      ...httpWire((init) => fetch(url, init)),
      close() {
        const closed = close()
        // The client keeps connections open in advance, and nobody is left to use them.
        server.closeAllConnections()
        return closed
      },
    }
  },
}

const streams: Host = {
  name: 'stdio',
  isHttp: false,
  async open(app) {
    const input = new PassThrough()
    const output = new PassThrough()
    const over = stdio(app, { input, output })
    const underWay = new Map<RequestId, Exchange>()
    const write = (line: object): void => void input.write(`${JSON.stringify(line)}\n`)
    onLines(output, (line) => deliver(JSON.parse(line) as JSONRPCMessage, underWay))
    return {
      open(message) {
        const { id } = message
        const exchange = new Exchange(message.method, () => {
          write({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } })
          underWay.delete(id)
          exchange.ended()
        })
        underWay.set(id, exchange)
        write(message)
        return exchange
      },
      async close() {
        input.end()
        await over
      },
    }
  },
}

export const hosts: readonly Host[] = [memory, fetching, node, streams]
export const inMemory = memory
export const httpHosts: readonly Host[] = [fetching, node]

/** What HTTP has to say of a message a second time, resources by their URI. */
export function httpHeaders(message: WireRequest): Record<string, string> {
  const { uri } = message.params
  return { ...headersOf(message), ...(typeof uri === 'string' && { 'Mcp-Name': encoded(uri) }) }
}

function httpWire(ask: (init: RequestInit) => Promise<Response>): Wire {
  return {
    open(message, headers) {
      const cancelling = new AbortController()
      const exchange = new Exchange(message.method, () => cancelling.abort())
      const init = {
        method: 'POST',
        headers: { ...httpHeaders(message), ...headers },
        body: JSON.stringify(message),
        signal: cancelling.signal,
      }
      void ask(init)
        .then((response) => read(response, exchange, cancelling.signal))
        .then(
          () => exchange.ended(),
          (error: unknown) => exchange.ended(cancelling.signal.aborted ? undefined : error),
        )
      return exchange
    },
    close: async () => {},
  }
}

async function read(response: Response, exchange: Exchange, signal: AbortSignal): Promise<void> {
  exchange.status = response.status
  exchange.contentType = response.headers.get('content-type')
  if (exchange.contentType !== 'text/event-stream') {
    const text = await response.text()
    if (text !== '') exchange.received(JSON.parse(text) as JSONRPCMessage)
    return
  }
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  // A handler that was called directly does not know that its response is not wanted any more.
  signal.addEventListener('abort', () => void reader?.cancel().catch(() => {}))
  let rest = ''
  for (let chunk = await reader?.read(); chunk?.done === false; chunk = await reader?.read()) {
    const events = (rest + chunk.value).split('\n\n')
    rest = events.pop() ?? ''
    for (const event of events) take(event, exchange)
  }
  if (rest !== '') throw new Error(`The last event is not complete: ${rest}`)
}

function take(event: string, exchange: Exchange): void {
  if (event.startsWith(':')) return exchange.commented()
  const [, data] = /^event: message\ndata: (.*)$/.exec(event) ?? []
  if (data === undefined) throw new Error(`This is no event: ${event}`)
  exchange.received(JSON.parse(data) as JSONRPCMessage)
}

function onLines(from: PassThrough, receive: (line: string) => void): void {
  let rest = ''
  from.setEncoding('utf8')
  from.on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) receive(line)
  })
}

/** A response goes to its request, a change to its subscription, and anything else to all that are under way. */
function deliver(message: JSONRPCMessage, underWay: Map<RequestId, Exchange>): void {
  if (!('method' in message)) {
    const exchange = message.id === undefined ? undefined : underWay.get(message.id)
    if (exchange === undefined) throw new Error(`Nobody waits for this: ${JSON.stringify(message)}`)
    underWay.delete(message.id as RequestId)
    exchange.received(message)
    exchange.ended()
    return
  }
  const subscription = subscriptionOf(message)
  if (subscription === undefined) for (const exchange of underWay.values()) exchange.received(message)
  else underWay.get(subscription)?.received(message)
}

export function subscriptionOf({ params }: JSONRPCNotification<object>): RequestId | undefined {
  const { _meta: meta }: { _meta?: Record<string, RequestId> } = params ?? {}
  return meta?.[META_SUBSCRIPTION]
}
