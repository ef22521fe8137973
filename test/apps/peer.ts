// A host of MCP Apps as a server sees it, over HTTP or standard streams: what the model calls, and what the page calls.
import { PassThrough } from 'node:stream'
import type { Rally } from 'mcp-rally'
import { stdio } from 'mcp-rally/node'
import { headersOf, META } from '../wire/messages.ts'

export const UI = { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } } }
export const VIEW = 'com.mcp-rally/ask'

// oxlint-disable-next-line typescript/no-explicit-any
export type Json = any
export type Send = (method: string, params?: object) => Promise<Json>

export interface Who {
  readonly capabilities?: object
  /** Sent to `authenticate` of the app as a header. */
  readonly user?: string
}

let lastId = 0

function resultOf({ body, response }: { response: Response; body: Json }): Json {
  if (body.error === undefined) return body.result
  throw Object.assign(new Error(body.error.message), { code: body.error.code, status: response.status })
}

/** Sends as a client of the revision. Throws what the server answers with an error. */
export async function peer(app: Rally, revision: string, { capabilities = UI, user = '' }: Who = {}): Promise<Send> {
  const post = async (
    message: object,
    headers: Record<string, string>,
  ): Promise<{ response: Response; body: Json }> => {
    const response = await app.fetch(
      new Request('http://localhost/mcp', {
        method: 'POST',
        body: JSON.stringify(message),
        headers: { ...headersOf(message), ...headers, ...(user !== '' && { Authorization: `Bearer ${user}` }) },
      }),
    )
    const text = await response.text()
    const json = text.startsWith('{') ? text : (/^data: (\{.*)$/m.exec(text)?.[1] ?? '{}')
    return { response, body: JSON.parse(json) }
  }
  if (revision === '2026-07-28') {
    return async (method, params = {}) => {
      const _meta = { ...META, 'io.modelcontextprotocol/clientCapabilities': capabilities }
      const named = 'uri' in params ? { 'Mcp-Name': String(params.uri) } : {}
      return resultOf(await post({ jsonrpc: '2.0', id: (lastId += 1), method, params: { ...params, _meta } }, named))
    }
  }
  const older = { 'MCP-Protocol-Version': revision }
  const params = { protocolVersion: revision, capabilities, clientInfo: { name: 'host', version: '1' } }
  const hello = await post({ jsonrpc: '2.0', id: (lastId += 1), method: 'initialize', params }, older)
  const session = { ...older, 'Mcp-Session-Id': hello.response.headers.get('mcp-session-id') ?? '' }
  return async (method, rest = {}) => {
    if (method === 'initialize') return resultOf(hello)
    return resultOf(await post({ jsonrpc: '2.0', id: (lastId += 1), method, params: rest }, session))
  }
}

/** The same over standard streams. */
export async function pipePeer(
  app: Rally,
  revision: string,
  capabilities: object = UI,
): Promise<{ send: Send; close: () => Promise<void> }> {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const waiting = new Map<unknown, (message: Json) => void>()
  output.on('data', (line) => {
    const message = JSON.parse(String(line))
    waiting.get(message.id)?.(message)
  })
  const over = stdio(app, { input, output })
  const ask = (method: string, params: object): Promise<Json> =>
    new Promise((resolve, reject) => {
      const id = (lastId += 1)
      waiting.set(id, ({ result, error }) => (error === undefined ? resolve(result) : reject(new Error(error.message))))
      input.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    })
  const close = (): Promise<void> => {
    input.end()
    return over
  }
  const isNewest = revision === '2026-07-28'
  const _meta = { ...META, 'io.modelcontextprotocol/clientCapabilities': capabilities }
  const clientInfo = { name: 'host', version: '1' }
  if (!isNewest) await ask('initialize', { protocolVersion: revision, capabilities, clientInfo })
  return { send: (method, params = {}) => ask(method, isNewest ? { ...params, _meta } : params), close }
}

export const callTool = (send: Send, name: string, args: object = {}): Promise<Json> =>
  send('tools/call', { name, arguments: args })

/** The page, which alone has a key. */
export class Page {
  readonly key: string
  readonly html: string
  readonly #send: Send

  private constructor(html: string, send: Send) {
    this.html = html
    this.key = /name="key" content="([^"]*)"/.exec(html)?.[1] ?? ''
    this.#send = send
  }

  static async open(send: Send): Promise<Page> {
    const { contents } = await send('resources/read', { uri: 'ui://rally/ask' })
    return new Page(contents[0].text, send)
  }

  /** What the page shows next. */
  async call(args: object): Promise<Json> {
    const result = await callTool(this.#send, 'rally_answer', { key: this.key, ...args })
    return result._meta[VIEW]
  }

  answer({ id, tool, arguments: args, state }: Json, answers: object): Promise<Json> {
    return this.call({ id, tool, arguments: args, state, answers })
  }
}

/** Looks again after a turn of the event loop, in which tasks get their time. */
export async function afterTurn<T>(look: () => Promise<T>): Promise<T> {
  await new Promise(setImmediate)
  return look()
}
