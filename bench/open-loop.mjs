// The generator of the overload run, a process of its own. A request is sent when its time has come, on any connection that has no
// open request; if none has, it waits here, and its wait counts. Latency is from the time when a request should have been sent.
import { once } from 'node:events'
import { connect } from 'node:net'
import { performance } from 'node:perf_hooks'
import { setTimeout as after } from 'node:timers/promises'
import { readResponse } from './response.mjs'

const closedLoop = 32
const lastResponsesWithin = 15_000
const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

process.on('disconnect', () => process.exit())
process.on('message', (order) => {
  measure(order).then(
    (counted) => process.send(counted),
    (error) => process.send({ error: error.message }),
  )
})

async function measure({ port, tool, connections, rate, milliseconds }) {
  const isClosed = rate === 'closed'
  const run = {
    text: textOf(port, tool),
    idle: [],
    due: [],
    counts: { served: 0, refused: 0, failed: 0 },
    latencies: [],
  }
  const sockets = await Promise.all(Array.from({ length: isClosed ? closedLoop : connections }, () => open(port, run)))
  run.again = isClosed
  const cpuBefore = process.cpuUsage()
  const began = performance.now()
  const end = began + milliseconds
  run.end = end
  let offered = 0
  if (isClosed) for (const socket of sockets) socket.start(performance.now())
  else {
    for (let now = began; now < end; now = performance.now()) {
      const due = Math.floor(((now - began) * rate) / 1000)
      for (; offered < due; offered++) {
        const at = began + (offered * 1000) / rate
        const socket = run.idle.pop()
        if (socket) socket.start(at)
        else run.due.push(at)
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  if (isClosed) await after(milliseconds)
  const elapsed = (performance.now() - began) / 1000
  const { user, system } = process.cpuUsage(cpuBefore)
  const counts = { ...run.counts }
  run.again = false
  // What was still waiting here was never sent: to its sender, that is a failure too.
  const unsent = run.due.splice(0).length
  await Promise.race([Promise.all(sockets.map((socket) => socket.finished())), after(lastResponsesWithin)])
  for (const { socket } of sockets) socket.destroy()
  const sorted = Float64Array.from(run.latencies).toSorted()
  return {
    seconds: elapsed,
    offered: offered / elapsed,
    served: counts.served / elapsed,
    refused: counts.refused / elapsed,
    failed: (counts.failed + unsent) / elapsed,
    p50: sorted[Math.floor(sorted.length * 0.5)] ?? 0,
    p99: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
    generatorLoad: (user + system) / 1e6 / elapsed,
  }
}

async function open(port, run) {
  let pending = ''
  let at
  let wake
  const onread = {
    buffer: Buffer.allocUnsafe(64 * 1024),
    callback: (length, buffer) => {
      pending += buffer.latin1Slice(0, length)
      const response = readResponse(pending)
      if (!response) return true
      pending = pending.slice(response.end)
      take(response.status)
      return true
    },
  }
  const socket = connect({ host: '127.0.0.1', port, noDelay: true, onread })
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.on('close', () => at !== undefined && take(0))
  const connection = { socket, start, finished }
  run.idle.push(connection)
  return connection

  function start(time) {
    at = time
    socket.write(run.text, 'latin1')
  }

  function take(status) {
    const now = performance.now()
    if (status === 200) {
      run.counts.served++
      run.latencies.push(now - at)
    } else if (status === 503) run.counts.refused++
    else run.counts.failed++
    at = undefined
    wake?.()
    if (socket.destroyed) return
    const next = run.again && now < run.end ? now : run.due.shift()
    if (next === undefined) run.idle.push(connection)
    else start(next)
  }

  function finished() {
    return at === undefined ? Promise.resolve() : new Promise((resolve) => (wake = resolve))
  }
}

function textOf(port, tool) {
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: tool, arguments: {}, _meta: meta },
  })
  return [
    'POST /mcp HTTP/1.1',
    `host: 127.0.0.1:${port}`,
    'content-type: application/json',
    'accept: application/json, text/event-stream',
    'mcp-protocol-version: 2026-07-28',
    'mcp-method: tools/call',
    `mcp-name: ${tool}`,
    `content-length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n')
}
