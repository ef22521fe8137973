// Node's own HTTP client as a wire, its connections kept for the next request.
import * as http from 'node:http'
import * as https from 'node:https'
import type { HttpClient, HttpResponseListener } from './http-client.ts'
import { wasSent } from './was-sent.ts'

/** Less than what servers keep one for, which is 5 s in Node: one that is just being closed loses what is sent on it. */
const IDLE_MS = 4_000

export function nodeClient(url: URL): HttpClient {
  const { request, Agent } = url.protocol === 'https:' ? https : http
  const agent = new Agent({ keepAlive: true, timeout: IDLE_MS })
  const { hostname, port, pathname, search, host } = url
  const target = {
    agent,
    method: 'POST',
    // As a socket wants it, without brackets.
    hostname: hostname.startsWith('[') ? hostname.slice(1, -1) : hostname,
    path: `${pathname}${search}`,
    ...(port !== '' && { port }),
  }
  return {
    post(headers, body, answer) {
      const length = String(Buffer.byteLength(body))
      const outgoing = request({ ...target, headers: ['Host', host, ...headers, 'Content-Length', length] })
      listen(outgoing, answer)
      // Head and body leave together.
      outgoing.end(body)
      return () => void outgoing.destroy()
    },
    open(method, headers, isIdle, answer) {
      const outgoing = request({ ...target, method, headers: ['Host', host, ...headers] })
      if (isIdle) outgoing.on('socket', (socket) => socket.unref())
      listen(outgoing, answer)
      outgoing.end()
      return () => void outgoing.destroy()
    },
    close: () => agent.destroy(),
  }
}

function listen(outgoing: http.ClientRequest, answer: HttpResponseListener): void {
  outgoing.on('response', (incoming) => read(incoming, answer))
  outgoing.on('error', (error) => answer.failed(error, wasSent(error)))
  // Nothing else would be told of it.
  outgoing.on('upgrade', (_response, socket) => {
    socket.destroy()
    answer.failed(new Error('the server switches to another protocol'), true)
  })
}

function read(incoming: http.IncomingMessage, answer: HttpResponseListener): void {
  const { headers, statusCode = 0 } = incoming
  answer.head(statusCode, (name) => {
    const value = headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  })
  incoming.on('data', (chunk: Buffer) => answer.data(chunk))
  incoming.on('end', () => answer.end())
  incoming.on('error', (error) => answer.failed(error, true))
}
