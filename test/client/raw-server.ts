// An HTTP server that answers just as a test tells it to, wrong or right.
import { once } from 'node:events'
import type { IncomingHttpHeaders, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Client, ClientOptions } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import type { Received } from './scripted.ts'

export interface Posted extends Received {
  readonly headers: IncomingHttpHeaders
}

export type Answering = (posted: Posted, response: ServerResponse, number: number) => void

/** Discovery is answered as it should be, and anything else by `answering`. */
export class RawServer {
  /** All but the discovery. */
  readonly posted: Posted[] = []
  connections = 0
  readonly #server: Server

  constructor(answering: Answering) {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => void chunks.push(chunk))
      request.on('end', () => {
        const message = JSON.parse(Buffer.concat(chunks).toString()) as Received
        const posted = { ...message, headers: request.headers }
        if (message.method === 'server/discover') return json(response, { id: message.id, result: DISCOVERED })
        this.posted.push(posted)
        answering(posted, response, this.posted.length - 1)
      })
    })
    this.#server.on('connection', () => (this.connections += 1))
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/mcp?a=b`
  }

  async close(): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close')
  }
}

const DISCOVERED = { supportedVersions: ['2026-07-28'], capabilities: {} }

/** Answers with JSON; `more` is the envelope's, beside its version. */
export function json(response: ServerResponse, more: object, status = 200): void {
  response.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8' })
  response.end(JSON.stringify({ jsonrpc: '2.0', ...more }))
}

/** Begins a stream of events, whose pieces are written as they are. */
export function events(response: ServerResponse, ...pieces: readonly string[]): void {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' })
  for (const piece of pieces) response.write(piece)
}

export const event = (more: object): string => `data: ${JSON.stringify({ jsonrpc: '2.0', ...more })}\n\n`

export interface RawConnection {
  readonly client: Client
  readonly server: RawServer
  readonly close: () => Promise<void>
}

export async function rawConnection(answering: Answering, options: ClientOptions = {}): Promise<RawConnection> {
  const server = new RawServer(answering)
  const client = await connect(await server.listen(), options)
  const close = async (): Promise<void> => {
    await client.close()
    await server.close()
  }
  return { client, server, close }
}
