// Tasks per second on PostgreSQL, with fsync on: ours, the commit before statements were shared by several tasks, DBOS, graphile-worker,
// and the same SQL by hand. All peers are measured in one run, in turn, and what counts is the ratios.
import { fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { buildOfCommit } from '../../scripts/build-of-commit.mjs'
import { startChild } from '../child.mjs'
import { median } from '../median.mjs'
import { table } from '../table.mjs'
import { Costs } from './costs.mjs'

/** The last commit before statements were shared by several tasks. */
const BEFORE = 'ce10e78'
const CONNECTIONS = 10
const PROCESSES = [1, 2, 4]
const IN_FLIGHT = [1, 32, 256]
const SETTINGS = ['fsync=on', 'max_connections=500', 'max_wal_size=8GB', 'shared_preload_libraries=pg_stat_statements']
const TRACK = 'pg_stat_statements.track'

const PEERS = {
  rally: { file: 'rally' },
  before: { file: 'rally', isBefore: true },
  dbos: { file: 'dbos' },
  graphile: { file: 'graphile-worker' },
  batched: { file: 'graphile-worker', env: { BENCH_BATCHED: 'true' } },
  byHand: { file: 'by-hand' },
}

export async function benchPostgres({
  rounds,
  milliseconds,
  processes = PROCESSES,
  inFlight = IN_FLIGHT,
  peers = Object.keys(PEERS),
}) {
  const before = peers.includes('before') ? buildOfCommit(BEFORE) : undefined
  const server = await startServer()
  try {
    const run = { server, before, rounds, milliseconds, inFlight, peers }
    const results = []
    for (const count of processes) results.push(...(await measure(run, count)))
    return results
  } finally {
    await server.stop()
    before?.remove()
  }
}

/** Of the Node that all peers run in, which is not the one of this process, and of the packages. */
export function peerVersions() {
  const { dependencies } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'))
  return {
    node: spawnSync(peerNode(), ['--version'], { encoding: 'utf8' }).stdout.trim(),
    versions: { dbos: dependencies['@dbos-inc/dbos-sdk'], graphile: dependencies['graphile-worker'] },
  }
}

export function print(results) {
  for (const unit of ['perSecond', 'ratio']) {
    const names = Object.keys(results[0].peers)
    const cell = (value) =>
      value === undefined ? '' : unit === 'ratio' ? value.toFixed(2) : Math.round(value).toLocaleString('en')
    const rows = results.map(({ processes, inFlight, peers }) => [
      `${processes} processes, ${inFlight} in flight`,
      ...names.map((name) => cell(peers[name][unit])),
    ])
    console.log(`\n${table([unit === 'ratio' ? 'rally / peer' : 'tasks per second', ...names], rows)}`)
  }
  const costs = results.filter(({ peers }) => Object.values(peers).some(({ cost }) => cost !== undefined))
  const rows = costs.flatMap(({ inFlight, peers }) =>
    Object.entries(peers).map(([name, { cost }]) => [
      `${name}, ${inFlight} in flight`,
      cost.statements,
      cost.commits,
      cost.walBytes,
    ]),
  )
  if (rows.length > 0) console.log(`\n${table(['per task', 'statements', 'commits', 'WAL bytes'], rows)}`)
}

/** All cases of so many processes of each peer. The first one also counts what a task costs. */
async function measure({ server, before, rounds, milliseconds, inFlight, peers }, processes) {
  const groups = new Map()
  for (const name of peers) groups.set(name, await Group.start(name, processes, server, before))
  try {
    const results = []
    for (const count of inFlight) {
      const measured = await alternate(groups, rounds, (group) => group.rate(count, milliseconds))
      const costs = new Map()
      if (processes === 1)
        for (const [name, group] of groups) costs.set(name, await costOf(server, group, count, milliseconds))
      results.push({ processes, inFlight: count, peers: summary(measured, peers, costs) })
    }
    return results
  } finally {
    for (const group of groups.values()) group.stop()
  }
}

function summary(measured, peers, costs) {
  return Object.fromEntries(
    peers.map((name) => {
      const ratio = median(measured.map((round) => round.rally / round[name]))
      const perSecond = median(measured.map((round) => round[name]))
      return [name, { perSecond: rounded(perSecond), ratio: rounded(ratio), cost: costs.get(name) }]
    }),
  )
}

function rounded(value) {
  return Number(value.toFixed(value < 100 ? 2 : 0))
}

/** Each round measures all peers, every second one in the reverse order. The first one only warms up. */
async function alternate(groups, rounds, measureOne) {
  const measured = []
  for (let round = -1; round < rounds; round += 1) {
    const names = [...groups.keys()]
    const rates = {}
    for (const name of round % 2 ? names.toReversed() : names) rates[name] = await measureOne(groups.get(name))
    if (round >= 0) measured.push(rates)
  }
  return measured
}

async function costOf(server, group, count, milliseconds) {
  const costs = new Costs(server.client, group.database)
  await setSetting(server.client, TRACK, 'top')
  await costs.begin()
  const before = await group.ended()
  await group.rate(count, milliseconds)
  const cost = await costs.end((await group.ended()) - before)
  await setSetting(server.client, TRACK, 'none')
  return cost
}

/** The processes of a peer, on a database of its own. */
class Group {
  #processes

  static async start(name, processes, server, before) {
    const { file, isBefore, env = {} } = PEERS[name]
    const database = `${name.toLowerCase()}_${processes}`
    await server.client.query(`CREATE DATABASE ${database}`)
    const group = new Group()
    group.database = database
    group.#processes = []
    for (let index = 0; index < processes; index += 1) {
      const options = { url: server.urlOf(database), connections: CONNECTIONS, concurrency: 256, index }
      const dist = isBefore === true ? { BENCH_DIST: before.dist } : {}
      const process = startChild(
        name,
        new URL(`peers/${file}.mjs`, import.meta.url),
        { ...env, ...dist, BENCH_PEER: JSON.stringify(options) },
        peerNode(),
      )
      group.#processes.push(process)
      await process.next(60_000)
    }
    return group
  }

  /** Lives per second with so many in flight in all processes together, from the first one's start to the last one's end. */
  async rate(count, milliseconds) {
    const [began, before] = [performance.now(), await this.ended()]
    await this.#each((process, i, { length }) => {
      const share = Math.floor(count / length) + (i < count % length ? 1 : 0)
      // Also without lives of its own, a process may run those of others.
      return process.ask({ run: { count: share } })
    })
    await setTimeout(milliseconds)
    await this.#each((process) => process.ask({ over: true }, 60_000))
    await this.settle()
    return (((await this.ended()) - before) * 1000) / (performance.now() - began)
  }

  /** Resolves when no life is under way any more. */
  async settle() {
    for (;;) {
      const counts = await this.#counts()
      if (counts.begun === counts.ended) return
      await setTimeout(10)
    }
  }

  async ended() {
    return (await this.#counts()).ended
  }

  async #counts() {
    const counts = await this.#each((process) => process.ask({ count: true }, 60_000))
    const total = (name) => counts.reduce((sum, count) => sum + count[name], 0)
    return { begun: total('begun'), ended: total('ended') }
  }

  stop() {
    for (const { stop } of this.#processes) stop()
  }

  #each(run) {
    return Promise.all(this.#processes.map(run))
  }
}

async function startServer() {
  // The server runs in a child process, which ends with this one.
  const keeper = fork(new URL('../../test/stores/database-keeper.mjs', import.meta.url), SETTINGS, { execArgv: [] })
  const [{ url, failed }] = await once(keeper, 'message')
  if (failed !== undefined) throw new Error(failed)
  const client = new pg.Client(url)
  await client.connect()
  await setSetting(client, TRACK, 'none')
  return {
    client,
    // DBOS wants a host in it. The one in the query counts, which is the folder of the socket.
    urlOf: (database) => url.replace('@/postgres?', `@localhost/${database}?`),
    stop: async () => {
      await client.end()
      keeper.disconnect()
      await once(keeper, 'exit')
    },
  }
}

/** For all connections. They take it over before their next statement. */
async function setSetting(client, name, value) {
  await client.query(`ALTER SYSTEM SET ${name} = '${value}'`)
  await client.query('SELECT pg_reload_conf()')
  await setTimeout(200)
}

const own = fileURLToPath(new URL('.', import.meta.url))

/** Installs the peers, unless they are installed. */
export function install() {
  if (existsSync(`${own}node_modules`)) return
  const args = ['install', '--no-save', '--no-package-lock', '--no-engine-strict', '--ignore-scripts', '--prefix', own]
  const { status } = spawnSync('npm', args, { stdio: 'inherit' })
  if (status !== 0) throw new Error(`npm ${args.join(' ')} failed.`)
}

/** The Node that all peers run in. */
export function peerNode() {
  const installed = `${own}node_modules/node24/bin/node`
  return existsSync(installed) ? installed : process.execPath
}
