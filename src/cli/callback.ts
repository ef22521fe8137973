// Waits on this machine for the browser to come back from a login.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const PATH = '/callback'

export interface Callback {
  readonly redirectUrl: string
  /** The address that the browser came back to. */
  readonly address: Promise<string>
  close(): void
}

/** `lastPort` is used again if it is free, because the client is registered with it. */
export async function openCallback(lastPort: number | undefined): Promise<Callback> {
  const server = createServer()
  const address = new Promise<string>((resolve) => {
    server.on('request', (request, response) => {
      const isCallback = request.method === 'GET' && request.url?.startsWith(`${PATH}?`) === true
      response.writeHead(isCallback ? 200 : 404, HEADERS).end(isCallback ? PAGE : '')
      if (isCallback) resolve(`http://127.0.0.1:${port}${request.url}`)
    })
  })
  const listen = (at: number): Promise<void> =>
    new Promise((resolve, reject) => server.once('error', reject).listen(at, '127.0.0.1', resolve))
  await (lastPort === undefined ? listen(0) : listen(lastPort).catch(() => listen(0)))
  const { port } = server.address() as AddressInfo
  return {
    redirectUrl: `http://127.0.0.1:${port}${PATH}`,
    address,
    close: () => {
      server.close()
      server.closeIdleConnections()
    },
  }
}

/** The page loads nothing, and the address with the code is not passed on. */
const HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': "default-src 'none'",
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
  Connection: 'close',
}

const PAGE = '<!doctype html><title>rally</title><h1>Done</h1><p>Go back to the terminal. You may close this page.</p>'
