// Bytes to a real HTTP server on loopback, and the same requests to `app.fetch` with odd bodies.
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { connect } from 'node:net'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import type { Rally } from 'mcp-rally'
import { serve } from 'mcp-rally/node'
import { headersOf } from '../../wire/messages.ts'
import { fuzzApp, SCOPED } from '../wire/app.ts'
import { mutateCharacters, mutateText, oddString, parsed } from '../harness/json.ts'
import { Slots } from '../wire/messages.ts'
import { modernProgram, olderProgram } from '../wire/programs.ts'
import type { Random } from '../harness/random.ts'
import type { Watch } from '../harness/target.ts'
import { target } from '../harness/target.ts'
import { Asked } from '../wire/check.ts'
import { checkBody, readResponses } from '../wire/http-responses.ts'
import { mutateList } from './dispatch.ts'

/** With `chunk` above 0, the body comes in chunks of so many bytes. */
type RawRequest = { line: string; headers: [string, string][]; body: string; chunk: number }
type Input = {
  via: string
  requests: RawRequest[]
  /** Where the bytes are cut into writes, from 0 to 1. */
  cuts: number[]
  /** Characters put in or left out of what is sent, at a place from 0 to 1. */
  edits: { at: number; drop: number; add: string }[]
  end: string
}

const POST = 'POST /mcp HTTP/1.1'
const TARGETS = ['/mcp', '/mcp', '/mcp?x=1', '//mcp', '*', 'http://localhost/mcp', '/%6dcp', '/mcp/../mcp']
const METHODS = ['POST', 'GET', 'DELETE', 'OPTIONS', 'PUT', 'PRI', 'post']
const VERSIONS = ['HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0', 'HTTP/2.0', 'HTTP/9.9']
const HEADERS = `
  Content-Length: 5 | Content-Length: -1 | Content-Length: 99999999999 | Expect: 100-continue | Upgrade: websocket
  Transfer-Encoding: chunked | Transfer-Encoding: chunked, identity | Transfer-Encoding:  chunked | Connection: Upgrade
  Origin: http://evil.example | Host: evil.example | Host: localhost:99999 | Accept: application/json
  Content-Type: text/plain | Content-Type: application/json; charset=utf-16 | Content-Encoding: gzip
  Mcp-Session-Id: se1.AAAA | Last-Event-ID: cAAAA:1 | Mcp-Name: =?base64?4pyT?= | Mcp-Param-Region: eu
  MCP-Protocol-Version: 2025-11-25 | X-Long: ${'x'.repeat(20_000)}`
  .split(/\s*[|\n]\s*/)
  .filter((line) => line !== '')
  .map((line): [string, string] => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)])

export const http = target<Input>({
  name: 'http',
  limitMs: 8_000,
  generate(random) {
    const bodies = random.chance(0.1) ? olderProgram(random, '2025-11-25', false) : modernProgram(random)
    const requests = bodies.slice(0, 3).map((body): RawRequest => {
      const headers = Object.entries({ Host: 'localhost', ...headersOf(parsed(body)) })
      return { line: POST, headers, body, chunk: random.pick([0, 0, 1, 7]) }
    })
    const cuts = random.list(0, 4, () => random.next())
    return { via: random.pick(['socket', 'socket', 'fetch']), requests, cuts, edits: [], end: 'half' }
  },
  mutate(random, input, other) {
    const { requests, edits } = input
    const at = random.int(requests.length)
    const changed = (): RawRequest => mutateRequest(random, requests[at] as RawRequest, random.pick(other.requests))
    return random.oneOf<Input>([
      () => ({ ...input, requests: requests.with(at, changed()) }),
      () => ({ ...input, requests: requests.with(at, changed()) }),
      () => ({ ...input, requests: requests.with(at, changed()) }),
      () => ({ ...input, requests: mutateList(random, requests, other.requests).slice(0, 5) }),
      () => ({ ...input, cuts: random.list(0, 40, () => random.next()) }),
      () => ({ ...input, edits: [...edits.slice(-3), someEdit(random)] }),
      () => ({ ...input, via: random.pick(['socket', 'fetch']), end: random.pick(['half', 'wait', 'reset']) }),
    ])
  },
  async open(watch) {
    const app = fuzzApp(watch, {}, SCOPED)
    const { port, close, server } = await serve(fuzzApp(watch, {}, SCOPED), {
      port: 0,
      handleSignals: false,
      drainMs: 100,
      // A body that never ends is over within the limit of an input.
      bodyMs: 2_000,
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

function someEdit(random: Random): Input['edits'][number] {
  const add = random.pick(['', '\r\n', '\n', '\0', ' ', '0\r\n\r\n', oddString(random).slice(0, 9)])
  return { at: random.next(), drop: random.int(4), add }
}

function mutateRequest(random: Random, from: RawRequest, other: RawRequest): RawRequest {
  const { line, headers, body } = from
  const at = random.int(headers.length + 1)
  const [name, value] = headers[at] ?? random.pick(HEADERS)
  const withHeader = (dropped: number, ...added: [string, string][]): RawRequest => {
    return { ...from, headers: headers.toSpliced(at, dropped, ...added) }
  }
  return random.oneOf<RawRequest>([
    () => ({ ...from, line: mutateCharacters(random, line, other.line) }),
    () => ({ ...from, line: [METHODS, TARGETS, VERSIONS].map((part) => random.pick(part)).join(' ') }),
    () => ({ ...from, chunk: random.pick([0, 1, 2, 100, -1]) }),
    () => withHeader(0, random.pick(HEADERS)),
    () => withHeader(1, random.pick(HEADERS)),
    () => withHeader(1),
    () => withHeader(0, [name.toUpperCase(), value]),
    () => withHeader(1, [name, mutateCharacters(random, value, oddString(random))]),
    () => ({ ...from, body: mutateText(random, body, other.body) }),
    () => ({ ...from, body: mutateText(random, body, other.body) }),
  ])
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
  else if (end === 'wait') await Promise.race([closed, quietFor(received, 20)])
  else socket.end()
  // A client that has sent its last byte may still listen, for as long as it likes.
  if (end !== 'wait') await Promise.race([closed, quietStream(socket, received)])
  socket.destroy()
  return readResponses(watch, Buffer.concat(received).toString('latin1'), asked)
}

/** Resolves once the response is a stream of events on which nothing has come for a while, or the connection is over. */
async function quietStream(socket: Socket, received: readonly Buffer[]): Promise<void> {
  while (!socket.destroyed && !Buffer.concat(received).includes('text/event-stream')) await sleep(100)
  await quietFor(received, 500)
}

/** Resolves once nothing has come for so long. */
async function quietFor(received: readonly unknown[], ms: number): Promise<void> {
  for (let before = -1; before !== received.length;) {
    before = received.length
    await sleep(ms)
  }
}

function bytesOf({ line, headers, body, chunk }: RawRequest): Buffer {
  const bytes = Buffer.from(body)
  const framing = chunk === 0 ? `Content-Length: ${bytes.length}` : 'Transfer-Encoding: chunked'
  const fields = headers.map(([name, value]) => `${name}: ${value}`)
  const head = [line, ...fields, ...(chunk < 0 ? [] : [framing]), '', ''].join('\r\n')
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

async function throughFetch(watch: Watch, app: Rally, { requests, edits, end }: Input): Promise<string[]> {
  const asked = new Asked()
  const slots = new Slots()
  const fates: string[] = []
  for (const { line, headers, body: text, chunk } of requests) {
    const [method = '', path = ''] = line.split(' ')
    const bytes = Buffer.from(slots.fill(text))
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
    const body = await bytesIn(response)
    const type = response.headers.get('content-type') ?? ''
    fates.push(`${response.status} ${checkBody(watch, response.status, type, body.toString('latin1'), asked)}`)
    slots.note(parsed(body.toString()))
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
async function bytesIn(response: Response): Promise<Buffer> {
  const parts: Uint8Array[] = []
  const reader = response.body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined
  if (reader === undefined) return Buffer.alloc(0)
  const isOpen = response.headers.get('content-type') === 'text/event-stream'
  for (;;) {
    const quiet = sleep(50, { done: true, value: undefined } as const)
    const { done, value } = await (isOpen ? Promise.race([reader.read(), quiet]) : reader.read())
    if (done || value === undefined) break
    parts.push(value)
  }
  await reader.cancel()
  return Buffer.concat(parts)
}
