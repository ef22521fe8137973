// Node's own HTTP client, with keep-alive connections.
import * as http from 'node:http'
import * as https from 'node:https'
import type { HttpClient, HttpResponseListener } from './http-client.ts'
import { wasSent } from './http-client.ts'

/** Less than the 5 s after which a Node server closes an idle connection: a request sent while it closes is lost. */
const IDLE_MS = 4_000

export function platformHttpClient(url: URL): HttpClient {
  const { request, Agent } = url.protocol === 'https:' ? https : http
  const agent = new Agent({ keepAlive: true, timeout: IDLE_MS })
  const { hostname, port, pathname, search, host } = url
  const target = {
    agent,
    method: 'POST',
    // A socket takes an IPv6 address without brackets.
    hostname: hostname.startsWith('[') ? hostname.slice(1, -1) : hostname,
    path: `${pathname}${search}`,
    ...(port !== '' && { port }),
  }
  return {
    post(headers, body, listener) {
      const bytes = Buffer.byteLength(body)
      const outgoing = request({ ...target, headers: ['Host', host, ...headers, 'Content-Length', String(bytes)] })
      listen(outgoing, listener)
      // With end(body), head and body leave in one packet. ASCII is the same in both, and Node writes Latin-1 without encoding it.
      outgoing.end(body, bytes === body.length ? 'latin1' : 'utf8')
      return () => void outgoing.destroy()
    },
    open(method, headers, isIdle, listener) {
      const outgoing = request({ ...target, method, headers: ['Host', host, ...headers] })
      if (isIdle) outgoing.on('socket', (socket) => socket.unref())
      listen(outgoing, listener)
      outgoing.end()
      return () => void outgoing.destroy()
    },
    close: () => agent.destroy(),
  }
}

function listen(outgoing: http.ClientRequest, listener: HttpResponseListener): void {
  outgoing.on('response', (incoming) => read(incoming, listener))
  outgoing.on('error', (error) => listener.failed(error, wasSent(error)))
  // Node emits no other event for an upgrade.
  outgoing.on('upgrade', (_response, socket) => {
    socket.destroy()
    listener.failed(new Error('the server switches to another protocol'), true)
  })
}

function read(incoming: http.IncomingMessage, listener: HttpResponseListener): void {
  const { headers, statusCode = 0 } = incoming
  listener.head(statusCode, (name) => {
    const value = headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  })
  incoming.on('data', (chunk: Buffer) => listener.data(chunk))
  incoming.on('end', () => listener.end())
  incoming.on('error', (error) => listener.failed(error, true))
}
