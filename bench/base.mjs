// `npm run bench -- base <commit>`: this checkout beside an earlier commit in the same run, so that a change shows what it costs.
// Two of the same run beside them, two echos or two clients of the earlier commit: how far those differ is the noise of the machine. Two
// processes of the same code differ by up to a tenth for as long as they live, so each is started anew several times. What serves and what
// sends have a core each.
import { buildOfCommit } from '../scripts/build-of-commit.mjs'
import { startChild } from './child.mjs'
import { median } from './median.mjs'
import { pin } from './overload.mjs'
import { scenarioNames } from './requests.mjs'
import { table } from './table.mjs'

const now = new URL('../dist/', import.meta.url).href
const STARTS = 9
const ROUNDS = 11
const MILLISECONDS = 120
/** For each process and scenario, at 32 at a time: until then V8 still compiles. */
const WARMUP_MILLISECONDS = 2_000

export async function benchBase([commit = 'HEAD', ...rest]) {
  const isQuick = rest.includes('--quick')
  const compared = rest.includes('--clients') ? [compareClients] : [compareServers, compareClients]
  const { dist, remove } = buildOfCommit(commit)
  try {
    const rows = new Map()
    for (let start = 0; start < (isQuick ? 1 : STARTS); start++) {
      for (const compare of compared) {
        const children = []
        try {
          await compare(dist, isQuick ? 3 : ROUNDS, children, (label, pair, measured) => {
            const row = rows.get(label) ?? rows.set(label, new Map()).get(label)
            row.set(pair, [...(row.get(pair) ?? []), measured])
          })
        } finally {
          for (const { stop } of children) stop()
        }
      }
    }
    console.log('Medians of the rounds of each start, and of these the median and the range.')
    console.log('CPU: requests per CPU time of the process under test, which is less noisy than requests per second.')
    console.log(
      'same/same: two copies of the echo, or two clients of the earlier commit. What these differ by is noise.',
    )
    const cells = (ratios) =>
      ratios === undefined ? ['', ''] : [median(ratios).toFixed(3), `${low(ratios)}-${high(ratios)}`]
    console.log(
      table(
        ['ratio', ...PAIRS.flatMap((pair) => [pair, 'range'])],
        [...rows].map(([label, row]) => [label].concat(PAIRS.flatMap((pair) => cells(row.get(pair))))),
      ),
    )
  } finally {
    remove()
  }
}

const SERVER_CORE = 0
const SENDER_CORE = 1
const PAIRS = ['now/base', 'same/same', 'now/base (CPU)', 'same/same (CPU)']
const low = (ratios) => Math.min(...ratios).toFixed(2)
const high = (ratios) => Math.max(...ratios).toFixed(2)

async function compareServers(base, rounds, children, report) {
  const child = (name, file, dist) => started(children, name, file, dist)
  const generator = child('the load generator', './load.mjs')
  pin(generator.pid, SENDER_CORE)
  const peers = {
    echo: child('echo', './peers/echo.mjs'),
    now: child('now', './peers/rally.mjs', now),
    base: child('base', './peers/rally.mjs', base),
    again: child('echo again', './peers/echo.mjs'),
  }
  const ports = {}
  for (const [name, peer] of Object.entries(peers)) {
    ports[name] = (await peer.next()).port
    pin(peer.pid, SERVER_CORE)
  }
  const once = async (name, order) => {
    const before = (await peers[name].ask('cpu')).cpuMicroseconds
    const { requests, perSecond } = await generator.ask({ port: ports[name], ...order }, 20_000)
    const cpu = (await peers[name].ask('cpu')).cpuMicroseconds - before
    return { perSecond, perCpu: requests / cpu }
  }
  for (const scenario of scenarioNames) {
    const warmup = { scenario, connections: 32, milliseconds: WARMUP_MILLISECONDS }
    for (const name of Object.keys(peers)) await once(name, warmup)
    for (const connections of [32, 1]) {
      const order = { scenario, connections, milliseconds: MILLISECONDS }
      const measured = await alternate(Object.keys(peers), rounds, (name) => once(name, order))
      const label = `${scenario}, ${connections} at a time`
      reportAll(report, label, measured, ['again', 'echo'])
    }
  }
}

async function compareClients(base, rounds, children, report) {
  const pairs = {}
  for (const [name, dist] of [
    ['now', now],
    ['base', base],
    ['again', base],
  ]) {
    const server = started(children, `${name} server`, './peers/rally.mjs', dist)
    const client = started(children, `${name} client`, './client-rally.mjs', dist)
    const { port } = await server.next()
    pin(server.pid, SERVER_CORE)
    pin(client.pid, SENDER_CORE)
    pairs[name] = { port, client }
  }
  const once = async (name, calls, milliseconds) => {
    const { client, port } = pairs[name]
    const { perSecond, cpuMicroseconds } = await client.ask({ port, calls, milliseconds }, 20_000)
    return { perSecond, perCpu: 1 / cpuMicroseconds }
  }
  for (const name of Object.keys(pairs)) await once(name, 32, WARMUP_MILLISECONDS)
  for (const calls of [32, 1]) {
    const measured = await alternate(Object.keys(pairs), rounds, (name) => once(name, calls, MILLISECONDS))
    const label = `client pair, ${calls} at a time`
    reportAll(report, label, measured, ['again', 'base'])
  }
}

function reportAll(report, label, measured, same) {
  for (const [unit, suffix] of [
    ['perSecond', ''],
    ['perCpu', ' (CPU)'],
  ]) {
    report(label, `now/base${suffix}`, ratio(measured, 'now', 'base', unit))
    report(label, `same/same${suffix}`, ratio(measured, ...same, unit))
  }
}

// Every order is followed by its reverse, and every second round another peer begins.
async function alternate(names, rounds, once) {
  const measured = []
  for (let round = 0; round < rounds; round++) {
    const start = (round >> 1) % names.length
    const order = [...names.slice(start), ...names.slice(0, start)]
    const each = {}
    for (const name of round % 2 ? order.toReversed() : order) each[name] = await retried(() => once(name))
    measured.push(each)
  }
  return measured
}

/** The machine may stand still for longer than one measurement. That says nothing about the peer, so it is measured again. */
async function retried(measure) {
  try {
    return await measure()
  } catch (error) {
    if (!/^no (response|flow) within/.test(error.message)) throw error
    return measure()
  }
}

function ratio(measured, one, other, unit) {
  return median(measured.map((round) => round[one][unit] / round[other][unit]))
}

function started(children, name, file, dist) {
  const env = dist === undefined ? {} : { BENCH_DIST: dist }
  const child = startChild(name, new URL(file, import.meta.url), env)
  children.push(child)
  return child
}
