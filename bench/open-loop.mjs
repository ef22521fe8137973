// The generator of open-loop runs, a process of its own. A request is sent when its time has come, on any connection that has no
// open request; if none has, it waits here, and its wait counts. Latency is from the time when a request should have been sent.
import { connect } from 'node:net'
import { performance } from 'node:perf_hooks'
import { setTimeout as after } from 'node:timers/promises'
import { firstId, roundsOf, stateOf } from './requests.mjs'
import { readResponse } from './response.mjs'

const closedLoop = 32
const lastResponsesWithin = 15_000
const percentiles = Object.entries({ p50: 0.5, p90: 0.9, p99: 0.99, p999: 0.999 })
process.on('disconnect', () => process.exit())
process.on('message', (order) => {
  measure(order).then(
    (counted) => process.send(counted),
    (error) => process.send({ error: error.message }),
  )
})

async function measure({ port, scenario, connections, rate, milliseconds }) {
  const isClosed = rate === 'closed'
  const run = {
    port,
    rounds: roundsOf(scenario, { port }),
    most: isClosed ? closedLoop : connections,
    open: new Set(),
    idle: [],
    due: [],
    again: isClosed,
    served: 0,
    refused: 0,
    failed: 0,
    latencies: [],
  }
  const cpuBefore = process.cpuUsage()
  const began = performance.now()
  const end = began + milliseconds
  let offered = 0
  if (isClosed) {
    for (let n = 0; n < closedLoop; n++) send(run, performance.now())
    await after(milliseconds)
  } else {
    for (let now = began; now < end; now = performance.now()) {
      const due = Math.floor(((now - began) * rate) / 1000)
      for (; offered < due; offered++) send(run, began + (offered * 1000) / rate)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  const elapsed = (performance.now() - began) / 1000
  const { user, system } = process.cpuUsage(cpuBefore)
  run.again = false
  // What was still waiting here was never sent: to its sender, that is a failure too.
  const { served, refused } = run
  const failed = run.failed + run.due.splice(0).length
  for (const deadline = performance.now() + lastResponsesWithin; performance.now() < deadline; await after(50))
    if (run.idle.length === run.open.size) break
  for (const { socket } of run.open) socket.destroy()
  // With those that were answered after the end: for what the server spent on one.
  const answers = { served: run.served, refused: run.refused }
  const sorted = Float64Array.from(run.latencies).toSorted()
  return {
    seconds: elapsed,
    offered: offered / elapsed,
    served: served / elapsed,
    refused: refused / elapsed,
    failed: failed / elapsed,
    requests: sorted.length,
    ...Object.fromEntries(percentiles.map(([name, part]) => [name, sorted[Math.floor(sorted.length * part)] ?? 0])),
    answers,
    generatorLoad: (user + system) / 1e6 / elapsed,
  }
}

// `at` is when it should be sent. The connection used last is the first to be used again, so that the others may time out.
function send(run, at) {
  const connection = run.idle.pop() ?? (run.open.size < run.most ? open(run) : undefined)
  if (connection) connection.start(at)
  else run.due.push(at)
}

// A connection goes through the rounds of the scenario again and again, one request at a time.
function open(run) {
  let pending = ''
  let round = 0
  let state = ''
  let at
  const onread = {
    buffer: Buffer.allocUnsafe(64 * 1024),
    callback: (length, buffer) => {
      // The server closes a connection that has been quiet for long, and may say so before.
      if (at === undefined) return true
      pending += buffer.latin1Slice(0, length)
      const response = readResponse(pending)
      if (!response) return true
      pending = pending.slice(response.end)
      take(response)
      return true
    },
  }
  const socket = connect({ host: '127.0.0.1', port: run.port, noDelay: true, onread })
  const connection = { socket, start }
  run.open.add(connection)
  socket.on('error', () => {})
  socket.on('close', () => {
    run.open.delete(connection)
    const index = run.idle.indexOf(connection)
    if (index !== -1) run.idle.splice(index, 1)
    if (at !== undefined) run.failed++
  })
  return connection

  function start(time) {
    at = time
    socket.write(run.rounds[round].textOf(firstId, state), 'latin1')
  }

  function take({ status, body }) {
    const now = performance.now()
    const { marker, givesState } = run.rounds[round]
    const isRight = status === 200 && body.includes(marker)
    state = isRight && givesState ? stateOf(body) : ''
    round = isRight ? (round + 1) % run.rounds.length : 0
    if (isRight) {
      run.served++
      run.latencies.push(now - at)
    } else if (status === 503) run.refused++
    else run.failed++
    at = undefined
    const next = run.again ? now : run.due.shift()
    if (next === undefined) run.idle.push(connection)
    else start(next)
  }
}
