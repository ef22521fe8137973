// A server that says what it is told to, in memory, through fetch, over HTTP and over standard streams.
import type { Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AppLike, ServerAddress } from 'mcp-rally/client'
import type { Json } from '../harness/json.ts'
import { isObject, parsed } from '../harness/json.ts'

/** How each response goes over HTTP. */
export type Reply = {
  status: number
  type: string
  headers: [string, string][]
  /** Bytes that are written at a time; 0 writes all at once. */
  piece: number
  /** What is put into the body, at a place from 0 to 1. */
  edits: { at: number; add: string }[]
  /** Whether the body ends. */
  ends: boolean
}

export interface Lines {
  /** The texts of the responses by their methods, in order, the last one again and again. `"%id%"` is the id of the request. */
  readonly answers: readonly (readonly [method: string, text: string])[]
  /** Sent before each response, where the wire has a way. */
  readonly notes: readonly string[]
  readonly reply: Reply
}

const HONEST_REPLY: Reply = { status: 200, type: 'application/json', headers: [], piece: 0, edits: [], ends: true }
const HONEST = { resultType: 'complete', messages: [] }

/** What the server says next. */
export class Script {
  readonly #input: Lines
  readonly #used = new Map<string, number>()
  /** Whether the server has become an honest one. */
  isHonest = false

  constructor(input: Lines) {
    this.#input = input
  }

  get reply(): Reply {
    return this.isHonest ? HONEST_REPLY : this.#input.reply
  }

  /** The response to a request last, what is sent before it first. */
  messages(request: Json): string[] {
    const { method: asked, id = null } = isObject(request) ? request : {}
    if (this.isHonest) return [JSON.stringify({ jsonrpc: '2.0', id, result: HONEST })]
    const method = typeof asked === 'string' ? asked : ''
    const texts = this.#input.answers.flatMap(([name, text]) => (name === method ? [text] : []))
    const index = this.#used.get(method) ?? 0
    this.#used.set(method, index + 1)
    const last = texts[Math.min(index, texts.length - 1)]
    if (id === null || last === undefined) return [...this.#input.notes]
    const filled = (text: string): string => text.replaceAll('"%id%"', JSON.stringify(id))
    return [...this.#input.notes, last].map(filled)
  }

  /** The body over HTTP, as JSON or as events, with something in it that does not belong there. */
  body(request: Json): Buffer {
    const messages = this.messages(request)
    const isStream = /event-stream/i.test(this.reply.type)
    let text = isStream
      ? messages
          .map((each, index) => `id: ${index}\nevent: message\ndata: ${each.replaceAll('\n', '\ndata: ')}\n\n`)
          .join('')
      : (messages.at(-1) ?? '')
    for (const { at, add } of this.reply.edits) {
      const place = Math.floor(at * text.length)
      text = text.slice(0, place) + add + text.slice(place)
    }
    return Buffer.from(text)
  }
}

/** Where a client finds the server of this script; `url` is where it is over HTTP. */
export function addressOf(wire: string, { answers, notes }: Lines, script: Script, url: string): ServerAddress {
  if (wire === 'stdio')
    return { command: process.execPath, args: ['-e', STDIO_SERVER, JSON.stringify({ answers, notes })] }
  if (wire === 'memory') return inMemory(script)
  return url
}

function inMemory(script: Script): AppLike {
  return {
    async dispatch(message, { notify }) {
      const messages = script.messages(message as Json)
      for (const note of messages.slice(0, -1)) notify(note)
      const text = messages.at(-1)
      return text === undefined || !script.reply.ends ? undefined : { text }
    },
  }
}

/** In place of the platform's fetch. */
export async function fetched(script: Script, body: string | undefined): Promise<Response> {
  const { status, type, headers, piece, ends } = script.reply
  const bytes = script.body(parsed(body ?? 'null') ?? null)
  let at = 0
  const size = piece === 0 ? Math.max(bytes.length, 1) : piece
  const stream = new ReadableStream({
    pull(controller) {
      if (at < bytes.length) controller.enqueue(new Uint8Array(bytes.subarray(at, (at += size))))
      else if (ends) controller.close()
    },
  })
  try {
    return new Response(status === 204 ? null : stream, { status, headers: [['Content-Type', type], ...headers] })
  } catch {
    throw new TypeError('The server said what is not HTTP.')
  }
}

/** Each script has an address of its own. */
export class HostileHttp {
  readonly #scripts = new Map<string, Script>()
  #added = 0
  readonly #server: Server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('error', () => {}).on('data', (chunk: Buffer) => void chunks.push(chunk))
    request.on('end', () => {
      const script = this.#scripts.get(`http://${request.headers.host}${request.url}`)
      if (script !== undefined) answer(script, parsed(Buffer.concat(chunks).toString()) ?? null, response)
    })
  })

  add(script: Script): string {
    const url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${(this.#added += 1)}`
    this.#scripts.set(url, script)
    return url
  }

  remove(url: string): void {
    this.#scripts.delete(url)
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

/** Written as it is: Node would not let a server say some of it. */
function answer(script: Script, request: Json, { socket }: ServerResponse): void {
  const { status, type, headers, piece, ends } = script.reply
  const bytes = script.body(request)
  const fields = [['Content-Type', type], ['Connection', 'close'], ...headers]
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`)
  socket?.on('error', () => {}).write(Buffer.from(`HTTP/1.1 ${status} X\r\n${lines.join('')}\r\n`, 'latin1'))
  const size = piece === 0 ? bytes.length : Math.max(piece, Math.ceil(bytes.length / 200))
  for (let at = 0; at < bytes.length; at += size) socket?.write(bytes.subarray(at, at + size))
  if (ends) socket?.end()
}

/** Runs by `node -e`. */
const STDIO_SERVER = `
const { answers, notes } = JSON.parse(process.argv[1])
const used = {}
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { method, id } = JSON.parse(line)
  const texts = answers.filter(([name]) => name === method).map(([, text]) => text)
  const index = used[method] = (used[method] ?? -1) + 1
  const answer = texts[Math.min(index, texts.length - 1)]
  for (const text of id === undefined || answer === undefined ? notes : [...notes, answer]) console.log(text.replaceAll('"%id%"', JSON.stringify(id)))
})`
