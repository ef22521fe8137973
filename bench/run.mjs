// `npm run bench`: Rally and the official server against a bare HTTP echo, all in one run on one machine. `npm run bench -- client`
// is another run, of the clients, `npm run bench -- tasks` one of tasks, and `npm run bench -- overload` one past the capacity.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { benchBase } from './base.mjs'
import { startChild } from './child.mjs'
import { benchClients } from './client.mjs'
import { importTable, measureImports } from './import.mjs'
import { readOptions } from './options.mjs'
import { benchOverload } from './overload.mjs'
import { printTables, summarize } from './report.mjs'
import { benchTasks } from './tasks.mjs'

/** Tasks on PostgreSQL have many cases, and some are slow. */
const longestRun = process.argv[2] === 'tasks' ? 3_600_000 : 600_000
const files = {
  echo: new URL('./peers/echo.mjs', import.meta.url),
  rally: new URL('./peers/rally.mjs', import.meta.url),
  bearer: new URL('./peers/bearer.mjs', import.meta.url),
  official: new URL('./peers/official.mjs', import.meta.url),
  tuned: new URL('./peers/tuned.mjs', import.meta.url),
}
const children = []

// Whatever hangs, the run ends, and its children with it.
setTimeout(() => fail(new Error(`not done after ${longestRun / 1000} s`)), longestRun).unref()
process.on('SIGINT', () => fail(new Error('interrupted')))
process.on('SIGTERM', () => fail(new Error('ended')))

try {
  const [what, ...rest] = process.argv.slice(2)
  if (what === 'client') await benchClients(rest)
  else if (what === 'tasks') await benchTasks(rest)
  else if (what === 'base') await benchBase(rest)
  else if (what === 'overload') await benchOverload(rest)
  else await benchServers()
} catch (error) {
  fail(error)
}

async function benchServers() {
  const options = readOptions(process.argv.slice(2))
  if (options.peers.includes('rally') && !existsSync(new URL('../dist/node.js', import.meta.url)))
    throw new Error('dist/ is not there: `npm run build`, or leave Rally out with `--peers echo,official`')
  const summaries = (await measure(options)).map(summarize)
  stopChildren()
  const names = options.peers.filter((name) => name === 'rally' || name === 'official')
  const imports = await measureImports({ times: options.imports, names })

  printTables(summaries)
  if (names.length > 0) console.log(`\n${importTable(imports)}`)
  if (options.complete) record(options, summaries, imports)
  else console.log('\nPart of a run: bench/results.json is left as it was.')
}

// Round by round through every case, so that a slow spell of the machine falls on all of them, and within a case the
// peers follow one another in an order that changes.
async function measure({ scenarios, connections, peers: names, rounds, milliseconds, warmup }) {
  const generator = child('the load generator', new URL('./load.mjs', import.meta.url))
  const peers = []
  for (const name of names) {
    const process = child(name, files[name])
    const { port, authorization } = await process.next()
    peers.push({ name, process, port, authorization })
  }
  for (const peer of peers)
    for (const scenario of scenarios)
      await measureOnce(generator, peer, { scenario, connections: Math.max(...connections), milliseconds: warmup })

  const cases = scenarios.flatMap((scenario) =>
    connections.map((count) => ({ scenario, connections: count, rounds: [] })),
  )
  for (let round = 0; round < rounds; round++) {
    progress(`round ${round + 1} of ${rounds}`)
    for (const each of cases) {
      const measured = {}
      for (const peer of inTurn(peers, round)) {
        const order = { scenario: each.scenario, connections: each.connections, milliseconds }
        measured[peer.name] = await measureOnce(generator, peer, order)
      }
      each.rounds.push(Object.fromEntries(names.map((name) => [name, measured[name]])))
    }
  }
  progress('')
  return cases
}

async function measureOnce(generator, { name, process, port, authorization }, order) {
  try {
    const before = await process.ask('cpu')
    const counted = await generator.ask({ port, authorization, ...order }, order.milliseconds + 10_000)
    const after = await process.ask('cpu')
    return { ...counted, cpuMicroseconds: (after.cpuMicroseconds - before.cpuMicroseconds) / counted.requests }
  } catch (error) {
    throw new Error(`${name}, ${order.scenario}, ${order.connections} connections: ${error.message}`, { cause: error })
  }
}

// Every order is followed by its reverse, and every second round another peer begins.
function inTurn(peers, round) {
  const start = (round >> 1) % peers.length
  const order = [...peers.slice(start), ...peers.slice(0, start)]
  return round % 2 ? order.toReversed() : order
}

function record({ rounds, milliseconds }, results, imports) {
  const { version } = JSON.parse(
    readFileSync(new URL('../node_modules/@modelcontextprotocol/server/package.json', import.meta.url), 'utf8'),
  )
  const recorded = {
    date: new Date().toISOString().slice(0, 10),
    node: process.version,
    cpu: cpus()[0].model.trim(),
    cores: cpus().length,
    official: version,
    rounds,
    millisecondsPerRound: milliseconds,
    results,
    importMilliseconds: imports,
  }
  writeFileSync(new URL('results.json', import.meta.url), `${JSON.stringify(recorded, null, 2)}\n`)
}

function child(name, file) {
  const started = startChild(name, file)
  children.push(started)
  return started
}

function stopChildren() {
  for (const { stop } of children.splice(0)) stop()
}

function fail(error) {
  stopChildren()
  console.error(`bench: ${error.message}`)
  process.exit(1)
}

function progress(text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001B[K${text}`)
}
