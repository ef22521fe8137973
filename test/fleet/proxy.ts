// A plain round-robin proxy. It moves a request to the next instance only where nothing of it can have been taken up:
// the connection was refused, or was gone before the instance had asked for the body.
import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The port of the instance that answered. */
export const SERVED_BY = 'x-served-by'

export class Proxy {
  /** Where the instances are; the test changes them as it restarts one. */
  readonly ports: number[]
  /** How often a request was moved on. */
  moved = 0
  readonly #server: Server
  #turn = 0

  constructor(ports: readonly number[]) {
    this.ports = [...ports]
    this.#server = createServer((request, response) => void this.#serve(request, response))
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

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const first = (this.#turn += 1)
    for (let i = 0; i < this.ports.length; i += 1) {
      const port = this.ports[(first + i) % this.ports.length] ?? 0
      const outcome = await forward(port, request, body, response)
      if (outcome === 'answered') return
      if (outcome === 'lost') break
      this.moved += 1
    }
    response.writeHead(502).end()
  }
}

type Forwarded = 'answered' | 'untouched' | 'lost'

function forward(port: number, from: IncomingMessage, body: Buffer, response: ServerResponse): Promise<Forwarded> {
  return new Promise((resolve) => {
    let sentBody = false
    const headers = { ...from.headers, host: `127.0.0.1:${port}`, expect: '100-continue' }
    const { method = 'POST', url = '/' } = from
    const out = httpRequest({ host: '127.0.0.1', port, method, path: url, headers, agent: false })
    out.on('continue', () => {
      sentBody = true
      out.end(body)
    })
    out.on('error', () => resolve(sentBody ? 'lost' : 'untouched'))
    out.on('response', (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => void chunks.push(chunk))
      answer.on('error', () => resolve('lost'))
      answer.on('end', () => {
        const { 'content-type': type = '', 'mcp-session-id': session } = answer.headers
        if (session !== undefined) response.setHeader('Mcp-Session-Id', session)
        response.writeHead(answer.statusCode ?? 502, { 'Content-Type': type, [SERVED_BY]: String(port) })
        response.end(Buffer.concat(chunks))
        resolve('answered')
      })
    })
    out.flushHeaders()
  })
}
