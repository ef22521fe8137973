// Bytes to a real HTTP server on loopback, and the same requests to `app.fetch` with odd bodies.
import { once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import type { Rally } from 'mcp-rally'
import { serve } from 'mcp-rally/node'
import { headersOf } from '../../wire/messages.ts'
import { fuzzApp, SCOPED } from '../app.ts'
import { mutateCharacters, mutateText, oddString, parsed } from '../json.ts'
import { CAPABILITIES, fateOf, modernProgram, Slots } from '../messages.ts'
import type { Random } from '../random.ts'
import { readEvents } from '../sse.ts'
import type { Watch } from '../target.ts'
import { clipped, target } from '../target.ts'
import { Asked, checkSent } from '../wire.ts'
import { mutateList } from './dispatch.ts'

/** With `chunk` above 0, the body comes in chunks of so many bytes. */
type Request1 = { line: string; headers: [string, string][]; body: string; chunk: number }
type Input = {
  via: string
  requests: Request1[]
  /** Where the bytes are cut into writes, from 0 to 1. */
  cuts: number[]
  /** Characters put in or left out of what is sent, at a place from 0 to 1. */
  edits: { at: number; drop: number; add: string }[]
  end: string
}

const LINES = [
  'POST /mcp HTTP/1.1',
  'POST /mcp HTTP/1.1',
  'POST /mcp HTTP/1.1',
  'GET /mcp HTTP/1.1',
  'DELETE /mcp HTTP/1.1',
  'OPTIONS /mcp HTTP/1.1',
  'POST /mcp?x=1 HTTP/1.0',
  'PRI * HTTP/2.0',
  'POST //mcp HTTP/1.1',
  'POST http://localhost/mcp HTTP/1.1',
]
const HEADERS: [string, string][] = [
  ['Content-Length', '5'],
  ['Content-Length', '-1'],
  ['Content-Length', '99999999999'],
  ['Transfer-Encoding', 'chunked'],
  ['Transfer-Encoding', 'chunked, identity'],
  ['Transfer-Encoding', ' chunked'],
  ['Expect', '100-continue'],
  ['Connection', 'Upgrade'],
  ['Upgrade', 'websocket'],
  ['Origin', 'http://evil.example'],
  ['Host', 'evil.example'],
  ['Host', 'localhost:99999'],
  ['Content-Type', 'text/plain'],
  ['Content-Type', 'application/json; charset=utf-16'],
  ['Content-Encoding', 'gzip'],
  ['Accept', 'application/json'],
  ['Mcp-Session-Id', 'se1.AAAA'],
  ['Last-Event-ID', 'cAAAA:1'],
  ['Mcp-Name', '=?base64?4pyT?='],
  ['Mcp-Param-Region', 'eu'],
  ['MCP-Protocol-Version', '2025-11-25'],
  ['X-Long', 'x'.repeat(20_000)],
]

export const http = target<Input>({
  name: 'http',
  limitMs: 8_000,
  generate(random) {
    const bodies = random.chance(0.1) ? [initialize] : modernProgram(random)
    const requests = bodies.slice(0, 3).map((body): Request1 => ({
      line: LINES[0] ?? '',
      headers: Object.entries({ Host: 'localhost', ...headersOf(parsed(body)) }),
      body,
      chunk: random.pick([0, 0, 1, 7]),
    }))
    return {
      via: random.pick(['socket', 'socket', 'fetch']),
      requests,
      cuts: random.list(0, 4, () => random.next()),
      edits: [],
      end: random.pick(['half', 'half', 'half', 'reset']),
    }
  },
  mutate(random, input, other) {
    const roll = random.int(8)
    if (roll === 0) return { ...input, requests: mutateList(random, input.requests, other.requests).slice(0, 5) }
    if (roll === 1) return { ...input, cuts: random.list(0, 40, () => random.next()) }
    if (roll === 2)
      return {
        ...input,
        edits: [
          ...input.edits.slice(-3),
          {
            at: random.next(),
            drop: random.int(4),
            add: random.pick(['', '\r\n', '\n', '\0', ' ', '0\r\n\r\n', oddString(random).slice(0, 9)]),
          },
        ],
      }
    if (roll === 3) return { ...input, via: random.pick(['socket', 'fetch']), end: random.pick(['half', 'reset']) }
    const at = random.int(input.requests.length)
    return {
      ...input,
      requests: input.requests.with(
        at,
        mutateRequest(random, input.requests[at] as Request1, random.pick(other.requests)),
      ),
    }
  },
  async open(watch) {
    const app = fuzzApp(watch, {}, SCOPED)
    const { port, close, server } = await serve(fuzzApp(watch, {}, SCOPED), {
      port: 0,
      handleSignals: false,
      drainMs: 100,
    })
    return {
      run: (input) => (input.via === 'socket' ? overSocket(watch, port, input) : throughFetch(watch, app, input)),
      async close() {
        app.interrupt()
        server.closeAllConnections()
        await close()
      },
    }
  },
})

const initialize = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: CAPABILITIES, clientInfo: { name: 'fuzz', version: '1' } },
})

function mutateRequest(random: Random, from: Request1, other: Request1): Request1 {
  const roll = random.int(6)
  if (roll === 0)
    return { ...from, line: random.chance(0.7) ? random.pick(LINES) : mutateCharacters(random, from.line, other.line) }
  if (roll === 1) return { ...from, chunk: random.pick([0, 1, 2, 100, -1]) }
  if (roll < 4) {
    const at = random.int(from.headers.length + 1)
    const [name, value] = from.headers[at] ?? random.pick(HEADERS)
    const headers = random.pick([
      from.headers.toSpliced(at, 0, random.pick(HEADERS)),
      from.headers.toSpliced(at, 1, random.pick(HEADERS)),
      from.headers.toSpliced(at, 1),
      from.headers.toSpliced(at, 1, [name, mutateCharacters(random, value, oddString(random))]),
      from.headers.toSpliced(at, 0, [name.toUpperCase(), value]),
    ])
    return { ...from, headers }
  }
  return { ...from, body: mutateText(random, from.body, other.body) }
}

async function overSocket(watch: Watch, port: number, { requests, cuts, edits, end }: Input): Promise<string[]> {
  const asked = new Asked()
  for (const { body } of requests) asked.note(body)
  let bytes = Buffer.concat(requests.map(bytesOf))
  for (const { at, drop, add } of edits) {
    const place = Math.floor(at * bytes.length)
    bytes = Buffer.concat([bytes.subarray(0, place), Buffer.from(add), bytes.subarray(place + drop)])
  }
  const socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
  const received: Buffer[] = []
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => received.push(chunk))
  const closed = new Promise((resolve) => socket.once('end', resolve).once('close', resolve))
  await once(socket, 'connect')
  let from = 0
  for (const at of [...cuts.toSorted((a, b) => a - b), 1]) {
    const to = Math.floor(at * bytes.length)
    if (to > from) socket.write(bytes.subarray(from, to))
    from = to
    await turn()
  }
  if (end === 'reset') socket.resetAndDestroy()
  else socket.end()
  await closed
  socket.destroy()
  return readResponses(watch, Buffer.concat(received).toString('latin1'), asked)
}

function bytesOf({ line, headers, body, chunk }: Request1): Buffer {
  const bytes = Buffer.from(body)
  const framing = chunk === 0 ? `Content-Length: ${bytes.length}` : 'Transfer-Encoding: chunked'
  const head = `${line}\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}${chunk < 0 ? '' : `${framing}\r\n`}\r\n`
  const parts: Buffer[] = [Buffer.from(head, 'latin1')]
  if (chunk <= 0) parts.push(bytes)
  else {
    for (let at = 0; at < bytes.length; at += chunk) {
      const part = bytes.subarray(at, at + chunk)
      parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'))
    }
    parts.push(Buffer.from('0\r\n\r\n'))
  }
  return Buffer.concat(parts)
}

/** All that came over one connection. The last response may be cut off: its reader has gone. */
function readResponses(watch: Watch, text: string, asked: Asked): string[] {
  const fates: string[] = []
  for (let at = 0; at < text.length;) {
    const end = text.indexOf('\r\n\r\n', at)
    if (end === -1) break
    const head = text.slice(at, end)
    const [, status = ''] = /^HTTP\/1\.1 (\d{3}) [^\r\n]*(?:\r\n[^\r\n:]+: [^\r\n]*)*$/.exec(head) ?? []
    if (status === '') {
      watch.report('invalid', 'Not the head of a response', clipped(head))
      break
    }
    at = end + 4
    if (status.startsWith('1')) continue
    const { body, next } = bodyAt(text, at, head)
    at = next
    fates.push(
      `${status} ${checkBody(watch, Number(status), /content-type: ([^\r\n;]*)/i.exec(head)?.[1] ?? '', body, asked)}`,
    )
  }
  return fates
}

function bodyAt(text: string, at: number, head: string): { body: string; next: number } {
  const [, length] = /\r\ncontent-length: (\d+)/i.exec(head) ?? []
  if (length !== undefined) return { body: text.slice(at, at + Number(length)), next: at + Number(length) }
  if (!/\r\ntransfer-encoding: chunked/i.test(head)) return { body: '', next: at }
  let body = ''
  for (;;) {
    const lineEnd = text.indexOf('\r\n', at)
    const size = lineEnd === -1 ? 0 : Number.parseInt(text.slice(at, lineEnd), 16)
    if (!(size > 0)) return { body, next: lineEnd === -1 ? text.length : lineEnd + 4 }
    body += text.slice(lineEnd + 2, lineEnd + 2 + size)
    at = lineEnd + 2 + size + 2
  }
}

/** `body` has a character for each byte. */
function checkBody(watch: Watch, status: number, type: string, body: string, asked: Asked): string {
  const text = Buffer.from(body, 'latin1').toString()
  watch.checkLeaks(text, asked.sent)
  if (status >= 500 && status !== 503 && status !== 501 && status !== 505)
    watch.report('internal', `Status ${status}`, clipped(text))
  // What an older session says is the matter of another target.
  const revision = /initialize|session/i.test(asked.sent) ? 'any' : undefined
  if (type === 'application/json')
    return fateOf(parsed(text) === undefined ? undefined : checkSent(watch, text, asked, revision))
  if (type !== 'text/event-stream') return type
  const messages = readEvents(text).flatMap(({ data }) => (data ? [checkSent(watch, data, asked, revision)] : []))
  return messages.map(fateOf).join('+')
}

async function throughFetch(watch: Watch, app: Rally, { requests, edits, end }: Input): Promise<string[]> {
  const asked = new Asked()
  const slots = new Slots()
  const fates: string[] = []
  for (const { line, headers, body, chunk } of requests) {
    const [method = '', path = ''] = line.split(' ')
    const bytes = Buffer.from(slots.fill(body))
    asked.note(bytes.toString())
    let request: Request
    try {
      const hasBody = method !== 'GET' && method !== 'HEAD'
      const init = {
        method,
        headers: new Headers(headers),
        ...(hasBody && { body: streamOf(bytes, chunk, end === 'reset' && edits.length > 0), duplex: 'half' as const }),
      }
      request = new Request(`http://localhost${path}`, init)
    } catch {
      // No client could make it.
      continue
    }
    const response = await app.fetch(request)
    const text = await textOf(response)
    fates.push(
      `${response.status} ${checkBody(watch, response.status, response.headers.get('content-type') ?? '', text.toString('latin1'), asked)}`,
    )
    slots.note(parsed(text.toString()))
  }
  return fates
}

function streamOf(bytes: Buffer, chunk: number, fails: boolean): ReadableStream<Uint8Array> {
  let at = 0
  const size = chunk > 0 ? chunk : bytes.length
  return new ReadableStream({
    pull(controller) {
      if (fails && at >= bytes.length / 2) controller.error(new Error('The client has gone.'))
      else if (at >= bytes.length) controller.close()
      else controller.enqueue(bytes.subarray(at, (at += size)))
    },
  })
}

/** Of a stream that stays open, what comes at first. */
async function textOf(response: Response): Promise<Buffer> {
  const parts: Uint8Array[] = []
  const reader = response.body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined
  if (reader === undefined) return Buffer.alloc(0)
  const isOpen = response.headers.get('content-type') === 'text/event-stream'
  for (;;) {
    const quiet = new Promise<{ done: true; value: undefined }>(
      (resolve) => void setTimeout(() => resolve({ done: true, value: undefined }), 50),
    )
    const { done, value } = await (isOpen ? Promise.race([reader.read(), quiet]) : reader.read())
    if (done || value === undefined) break
    parts.push(value)
  }
  await reader.cancel()
  return Buffer.concat(parts)
}
