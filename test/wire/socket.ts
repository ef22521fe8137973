// A TCP connection to an HTTP server, for what no HTTP client would send, and for the order in which bytes come back.
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { connect } from 'node:net'
import { onTestFinished } from 'vitest'
import { headersOf } from './messages.ts'

export interface HttpResponse {
  status: number
  /** By their names in lower case. */
  headers: Readonly<Record<string, string>>
  body: string
}

export class Connection {
  readonly socket: Socket
  /** Resolves when the other side has ended the connection, however it did. */
  readonly closed: Promise<void>
  #received = Buffer.alloc(0)
  #over = false
  #wake: (() => void) | undefined

  private constructor(socket: Socket) {
    this.socket = socket
    this.closed = new Promise((resolve) => {
      const over = (): void => {
        this.#over = true
        this.#wake?.()
        resolve()
      }
      socket.on('end', over)
      socket.on('close', over)
    })
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk])
      this.#wake?.()
    })
  }

  /** Destroyed when the test is over. */
  static async open(port: number, host = '127.0.0.1'): Promise<Connection> {
    const socket = connect({ port, host, noDelay: true })
    onTestFinished(() => void socket.destroy())
    await once(socket, 'connect')
    return new Connection(socket)
  }

  write(data: string | Uint8Array): void {
    this.socket.write(data)
  }

  /** The next response that is not an interim one. */
  async final(): Promise<HttpResponse> {
    for (;;) {
      const response = await this.next()
      if (response.status >= 200) return response
    }
  }

  /** The next response. One to HEAD has no body, whatever its headers say. */
  async next({ toHead = false } = {}): Promise<HttpResponse> {
    const head = await this.#until('\r\n\r\n')
    const [statusLine = '', ...lines] = head.split('\r\n')
    const headers = Object.fromEntries(
      lines.map((line): [string, string] => {
        const [name = '', ...value] = line.split(': ')
        return [name.toLowerCase(), value.join(': ')]
      }),
    )
    const status = Number(statusLine.split(' ')[1])
    const isEmpty = toHead || status === 204 || status < 200
    return { status, headers, body: isEmpty ? '' : await this.#body(headers) }
  }

  /** Everything that comes until the other side ends the connection. */
  async rest(): Promise<string> {
    await this.closed
    return this.#take(this.#received.length)
  }

  async #body(headers: Readonly<Record<string, string>>): Promise<string> {
    if (headers['transfer-encoding'] === 'chunked') {
      let body = ''
      for (;;) {
        const size = Number.parseInt(await this.#until('\r\n'), 16)
        body += await this.#bytes(size)
        await this.#until('\r\n')
        if (size === 0) return body
      }
    }
    const length = headers['content-length']
    return length === undefined ? this.rest() : this.#bytes(Number(length))
  }

  async #until(end: string): Promise<string> {
    for (;;) {
      const at = this.#received.indexOf(end)
      if (at >= 0) return this.#take(at + end.length).slice(0, -end.length)
      await this.#more()
    }
  }

  async #bytes(count: number): Promise<string> {
    while (this.#received.length < count) await this.#more()
    return this.#take(count)
  }

  #take(count: number): string {
    const text = this.#received.toString('utf8', 0, count)
    this.#received = this.#received.subarray(count)
    return text
  }

  async #more(): Promise<void> {
    if (this.#over) throw new Error(`The connection ended after ${JSON.stringify(this.#received.toString())}.`)
    await new Promise<void>((resolve) => {
      this.#wake = resolve
    })
  }
}

export interface PostOptions {
  /** Beside those that go with the message; `undefined` leaves one out. */
  headers?: Readonly<Record<string, string | undefined>>
  version?: '1.0' | '1.1'
  path?: string
}

/** A whole request, as text. */
export function post(message: object, { headers, version = '1.1', path = '/mcp' }: PostOptions = {}): string {
  const body = JSON.stringify(message)
  const fields = {
    Host: 'localhost',
    ...headersOf(message),
    'Content-Length': String(Buffer.byteLength(body)),
    ...headers,
  }
  return `POST ${path} HTTP/${version}\r\n${fieldLines(fields)}\r\n${body}`
}

export function fieldLines(fields: Readonly<Record<string, string | undefined>>): string {
  return Object.entries(fields)
    .map(([name, value]) => (value === undefined ? '' : `${name}: ${value}\r\n`))
    .join('')
}
