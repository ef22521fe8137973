// The hostile server over HTTP, and what only HTTP can do wrong.
import { createServer } from 'node:http'
import { createGzip, gzipSync } from 'node:zlib'
import { beginListening, whenPoured } from './listens.mjs'
import { talk } from './talk.mjs'

const EVENTS = { 'Content-Type': 'text/event-stream' }
const JSON_TYPE = { 'Content-Type': 'application/json' }

const result = '{"resultType":"complete","content":[{"type":"text","text":"ok"}]}'
const response = (id) => `{"jsonrpc":"2.0","id":${id},"result":${result}}`
const notification = (method, params) => JSON.stringify({ jsonrpc: '2.0', method: `notifications/${method}`, params })

const plain =
  (status, headers, body = '') =>
  ({ response: to }) =>
    void to.writeHead(status, headers).end(body)
const streamed =
  (...pieces) =>
  ({ id, response: to }) => {
    to.writeHead(200, EVENTS)
    for (const piece of pieces) to.write(typeof piece === 'function' ? piece(id) : piece)
  }
const ended =
  (...pieces) =>
  (call) => {
    streamed(...pieces)(call)
    call.response.end()
  }
/** Bytes on the connection itself. */
const raw =
  (...pieces) =>
  ({ id, socket }) => {
    for (const piece of pieces) socket.write(typeof piece === 'function' ? piece(id) : piece)
  }
/** Writes for as long as anybody reads. */
const endless = (head, piece) => (call) => {
  const { socket } = call
  if (head !== undefined) socket.write(head)
  const text = typeof piece === 'function' ? piece(call.id) : piece
  const pour = () => {
    while (!socket.destroyed && socket.write(text));
  }
  socket.on('drain', pour)
  pour()
}
const dripping =
  (head, piece) =>
  ({ socket }) => {
    socket.write(head)
    const timer = setInterval(() => socket.write(piece), 20)
    socket.on('close', () => clearInterval(timer))
  }

/** Each byte as an HTTP chunk of its own. */
const chunksOf = (text) => Buffer.from(text.replaceAll(/[^]/g, '1\r\n$&\r\n'))

/** Sends a response of about as many bytes as the arguments say, each byte as an HTTP chunk of its own. */
const inTinyChunks =
  (type, before, after) =>
  ({ id, socket, args }) => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`)
    const [start, end] = response(id).split('ok')
    const filler = 'x'.repeat(16_384)
    const piece = chunksOf(filler)
    let left = Math.ceil(args.bytes / filler.length)
    socket.write(chunksOf(before + start))
    const pour = () => {
      while (!socket.destroyed && left > 0) {
        left -= 1
        if (!socket.write(piece)) return
      }
      if (left === 0) socket.end(`${chunksOf(end + after).toString()}0\r\n\r\n`)
      left -= 1
    }
    socket.on('drain', pour)
    pour()
  }

const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n'
const EVENT_HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n'
const OTHER = '{"jsonrpc":"2.0","id":987654,"result":{"content":[]}}'

const TRICKS = {
  silence: () => {},
  // Answered when all that there is to tell is told.
  poured: ({ id, response: to }) => void whenPoured().then(() => to.writeHead(200, JSON_TYPE).end(response(id))),
  talks: ({ id, response: to }) => {
    to.writeHead(200, EVENTS)
    for (const text of talk(id)) to.write(`data: ${text}\n\n`)
    to.end()
  },
  hangs_up: ({ socket }) => void socket.destroy(),
  resets: ({ socket }) => void socket.resetAndDestroy(),
  half_closes: ({ socket }) => void socket.end(),
  half_closes_midway: ({ socket }) => void socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"jsonrpc"'),
  drips_its_head: dripping('HTTP/1.1 200 OK\r\nX-Slow: ', 'a'),
  drips_its_body: dripping(HEAD, ' '),
  drips_comments: dripping(EVENT_HEAD, ':\n'),
  drips_its_event: dripping(`${EVENT_HEAD}data: `, ' '),
  tiny_chunks_of_a_body: inTinyChunks('application/json', '', ''),
  tiny_chunks_of_an_event: inTinyChunks('text/event-stream', 'data: ', '\n\n'),
  tiny_chunks_of_data: ({ id, socket }) => {
    const line = Buffer.from('4\r\ndata\r\n1\r\n\n\r\n'.repeat(4_096))
    socket.write(
      `HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`,
    )
    endless(undefined, line)({ id, socket })
  },
  stops_midway: ({ socket }) => void socket.write(HEAD + ' '.repeat(15_000_000)),
  stops_midway_in_an_event: ({ socket }) => void socket.write(`${EVENT_HEAD}data: ${' '.repeat(15_000_000)}`),
  endless_body: endless(HEAD, ' '.repeat(65_536)),
  endless_line: endless(`${EVENT_HEAD}data: `, 'x'.repeat(65_536)),
  endless_event: endless(EVENT_HEAD, 'data:\n'.repeat(10_000)),
  endless_comment: endless(`${EVENT_HEAD}:`, 'x'.repeat(65_536)),
  endless_comments: endless(EVENT_HEAD, ': nothing\n'.repeat(6_000)),
  endless_events: endless(EVENT_HEAD, 'event: other\ndata: nothing\n\n'.repeat(3_000)),
  endless_notifications: endless(EVENT_HEAD, (id) =>
    `data: ${notification('progress', { progressToken: id, progress: 1 })}\n\n`.repeat(1_000),
  ),
  endless_requests: endless(
    EVENT_HEAD,
    'data: {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}\n\n'.repeat(1_000),
  ),
  endless_head: endless('HTTP/1.1 200 OK\r\n', 'X-More: and more of it\r\n'.repeat(1_000)),
  endless_continue: endless(undefined, 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(1_000)),
  // 100 000 of each kind, and then the answer.
  flood: ({ id, response: to }) => {
    to.writeHead(200, EVENTS)
    const told = [
      notification('progress', { progressToken: id, progress: 1 }),
      notification('message', { level: 'info', data: 'x' }),
      notification('tools/list_changed'),
      notification('nonsense', { __proto__: { a: 1 } }),
    ]
    const piece = told
      .map((each) => `data: ${each}\n\n`)
      .join('')
      .repeat(1_000)
    for (let n = 0; n < 100; n += 1) to.write(piece)
    to.end(`data: ${response(id)}\n\n`)
  },
  event_of_another: streamed(`data: ${OTHER}\n\n`),
  event_of_nonsense: streamed('data: {"jsonrpc":\n\n'),
  event_of_bytes: streamed(Buffer.from([0x64, 0x61, 0x74, 0x61, 0x3a, 0xff, 0xfe, 0x0a, 0x0a])),
  event_of_a_list: streamed((id) => `data: [${response(id)}]\n\n`),
  event_unended: ended((id) => `data: ${response(id)}`),
  event_of_nothing: ended('\n\n\r\r\n\n: \nid\nretry: x\ndata\n\n'),
  no_events: ended(),
  another_id: ({ response: to }) => void to.writeHead(200, JSON_TYPE).end(OTHER),
  text_id: ({ id, response: to }) => void to.writeHead(200, JSON_TYPE).end(response(`"${id}"`)),
  no_id: ({ response: to }) => void to.writeHead(200, JSON_TYPE).end(response('null')),
  a_request: ({ response: to }) =>
    void to.writeHead(200, JSON_TYPE).end('{"jsonrpc":"2.0","id":1,"method":"roots/list"}'),
  a_batch: ({ id, response: to }) => void to.writeHead(200, JSON_TYPE).end(`[${response(id)}]`),
  odd_error: ({ id, response: to }) =>
    void to.writeHead(200, JSON_TYPE).end(`{"jsonrpc":"2.0","id":${id},"error":{"code":"1","message":{}}}`),
  // One answer too many, which the next request on the connection must not take for its own.
  two_answers: raw((id) =>
    [response(id), response(id + 1)]
      .map((body) => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
      .join(''),
  ),
  status_204: plain(204, {}),
  status_205: plain(205, {}),
  status_304: plain(304, {}),
  status_101: raw('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: evil\r\n\r\n'),
  status_299: plain(299, JSON_TYPE, '{'),
  status_418: plain(418, { 'Content-Type': 'text/html' }, '<html>'.repeat(1_000)),
  status_503: plain(503, { 'Content-Type': 'text/html' }, '<html>'),
  redirects: ({ response: to, url }) => void to.writeHead(302, { Location: url }).end(),
  redirects_with_method: ({ response: to, url }) => void to.writeHead(308, { Location: url }).end(),
  page: plain(200, { 'Content-Type': 'text/html' }, '<html>'),
  picture: plain(200, { 'Content-Type': 'image/png' }, Buffer.from([0x89, 0x50, 0x4e, 0x47])),
  no_type: plain(200, {}, ''),
  event_type_of_json: plain(200, EVENTS, '{"jsonrpc":"2.0"}'),
  gzipped: ({ id, response: to }) =>
    void to.writeHead(200, { ...JSON_TYPE, 'Content-Encoding': 'gzip' }).end(gzipSync(response(id))),
  gzip_bomb: ({ response: to }) => {
    to.writeHead(200, { ...JSON_TYPE, 'Content-Encoding': 'gzip' })
    const bomb = createGzip()
    bomb.on('error', () => {})
    bomb.pipe(to)
    const blank = Buffer.alloc(1_000_000, ' ')
    for (let n = 0; n < 400; n += 1) bomb.write(blank)
    bomb.end()
  },
  gzip_of_nonsense: plain(200, { ...JSON_TYPE, 'Content-Encoding': 'gzip' }, 'not at all'),
  large_header: raw(`HTTP/1.1 200 OK\r\nX-Large: ${'a'.repeat(200_000)}\r\nContent-Length: 0\r\n\r\n`),
  length_of_more: raw('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 999999999999999\r\n\r\n{'),
  length_of_nonsense: raw('HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}'),
  two_lengths: raw('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}'),
  chunks_of_nonsense: raw('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n'),
  no_http: raw('SSH-2.0-OpenSSH_9.6\r\n'),
}

export function serveHttp(answer) {
  const server = createServer((request, to) => {
    const chunks = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      const message = JSON.parse(Buffer.concat(chunks).toString())
      const mode = new URL(request.url, 'http://server').searchParams.get('mode')
      const said = answer(message, mode)
      if (said !== undefined) return void to.writeHead(200, JSON_TYPE).end(said)
      to.on('error', () => {})
      if (message.method === 'subscriptions/listen') return listen(message.id, mode, to)
      // It answers nothing else: neither an older handshake, nor that it does not know the method.
      if (message.method !== 'tools/call') return
      const { name, arguments: args } = message.params
      TRICKS[name]({ id: message.id, args, response: to, socket: request.socket, url: request.url })
    })
  })
  server.on('connection', (socket) => socket.on('error', () => {}))
  server.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}/mcp`))
}

function listen(id, mode, to) {
  to.writeHead(200, EVENTS).flushHeaders()
  const write = (text) => !to.destroyed && to.write(`data: ${text}\n\n`)
  beginListening(id, mode, write, (more) => to.once('drain', more))
}
