// The page by a link for a server over standard streams: a listener on loopback, on a port that the system chooses. It serves that page
// and nothing else, and does not keep the process alive.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ByteBuffer, textOf } from '../protocol/byte-buffer.ts'
import type { Logger } from '../protocol/logger.ts'
import type { AnswerPage } from '../server/page.ts'
import type { Reply } from '../server/reply.ts'

export interface LocalPage {
  readonly url: string
  readonly close: () => void
}

const MAX_BODY_BYTES = 1024 * 1024
const MAX_CONNECTIONS = 100
const REQUEST_MS = 10_000

export async function openLocalPage(page: AnswerPage, logger: Logger): Promise<LocalPage> {
  let origin = ''
  const server = createServer({ headersTimeout: REQUEST_MS, requestTimeout: REQUEST_MS }, (request, response) => {
    servePage(page, origin, request, response).catch((error: unknown) => {
      logger.error('The page on this machine failed.', { error })
      response.destroy()
    })
  })
  server.maxConnections = MAX_CONNECTIONS
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  server.unref()
  const { port } = server.address() as AddressInfo
  origin = `http://127.0.0.1:${port}`
  const close = (): void => {
    server.close()
    server.closeAllConnections()
  }
  return { url: `${origin}/`, close }
}

async function servePage(
  page: AnswerPage,
  origin: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = '', url = '', headers } = request
  // Another name that leads to this machine is a page of others that rebinds its name.
  if (`http://${headers.host}` !== origin) return send(response, refusal(403, 'This name is not served here.'))
  const header = (name: string): string | undefined => {
    const value = headers[name.toLowerCase()]
    return Array.isArray(value) ? value.join(', ') : value
  }
  const opened = await page.open({ method, url, header }, origin)
  if (!('kind' in opened)) return send(response, opened)
  const body = await readBody(request)
  send(response, body === undefined ? refusal(413, 'The body is too large.') : await page.answer(opened, body))
}

async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const body = new ByteBuffer()
  for await (const chunk of request as AsyncIterable<Buffer>) {
    if (body.length + chunk.length > MAX_BODY_BYTES || body.isCrumbled) return undefined
    body.append(chunk)
  }
  return textOf(body.view())
}

function refusal(status: number, text: string): Reply {
  return { status, text, headers: { 'Content-Type': 'text/plain; charset=utf-8', Connection: 'close' } }
}

function send(response: ServerResponse, { status, headers, text }: Reply): void {
  response.writeHead(status, headers).end(text)
}
