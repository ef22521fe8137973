// `npm run bench -- base <commit>`: this checkout beside an earlier commit in the same run, so that a change shows what it costs.
// A second echo runs beside the first: how far those two differ is the noise of the machine.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { startChild } from './child.mjs'
import { median } from './median.mjs'
import { scenarioNames } from './requests.mjs'
import { table } from './table.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const ROUNDS = 75
const MILLISECONDS = 120

export async function benchBase([commit = 'HEAD', ...rest]) {
  const rounds = rest.includes('--quick') ? 3 : ROUNDS
  const folder = checkOut(commit)
  const children = []
  try {
    build(folder)
    const rows = [
      ...(await compareServers(folder, rounds, children)),
      ...(await compareClients(folder, rounds, children)),
    ]
    const pairs = ['now/base', 'range', 'echo/echo', 'range']
    console.log(
      'Median of the rounds: requests per second, then requests per CPU time of the server, which is less noisy.',
    )
    console.log(table(['ratio', ...pairs, ...pairs.map((title) => `${title} (CPU)`)], rows.map(filled)))
  } finally {
    for (const { stop } of children) stop()
    run('git', ['worktree', 'remove', '--force', folder], root)
  }
}

async function compareServers(folder, rounds, children) {
  const child = (name, file, dist) => started(children, name, file, dist)
  const generator = child('the load generator', './load.mjs')
  const peers = {
    echo: child('echo', './peers/echo.mjs'),
    now: child('now', './peers/rally.mjs', root),
    base: child('base', './peers/rally.mjs', folder),
    again: child('echo again', './peers/echo.mjs'),
  }
  const ports = {}
  for (const [name, peer] of Object.entries(peers)) ports[name] = (await peer.next()).port
  const once = async (name, order) => {
    const before = (await peers[name].ask('cpu')).cpuMicroseconds
    const { requests, perSecond } = await generator.ask({ port: ports[name], ...order }, 20_000)
    const cpu = (await peers[name].ask('cpu')).cpuMicroseconds - before
    return { perSecond, perCpu: requests / cpu }
  }
  const rows = []
  for (const scenario of scenarioNames)
    for (const connections of [32, 1]) {
      const order = { scenario, connections, milliseconds: MILLISECONDS }
      const measured = await alternate(Object.keys(peers), rounds, (name) => once(name, order))
      rows.push([
        `${scenario}, ${connections} at a time`,
        ...ratio(measured, 'now', 'base', 'perSecond'),
        ...ratio(measured, 'again', 'echo', 'perSecond'),
        ...ratio(measured, 'now', 'base', 'perCpu'),
        ...ratio(measured, 'again', 'echo', 'perCpu'),
      ])
    }
  return rows
}

async function compareClients(folder, rounds, children) {
  const pairs = {}
  for (const [name, dist] of [
    ['now', root],
    ['base', folder],
  ]) {
    const { port } = await started(children, `${name} server`, './peers/rally.mjs', dist).next()
    pairs[name] = { port, client: started(children, `${name} client`, './client-rally.mjs', dist) }
  }
  const rows = []
  for (const calls of [32, 1]) {
    const once = async (name) => {
      const { client, port } = pairs[name]
      const { perSecond } = await client.ask({ port, calls, milliseconds: MILLISECONDS }, 20_000)
      return { perSecond }
    }
    const measured = await alternate(Object.keys(pairs), rounds, once)
    rows.push([`client pair, ${calls} at a time`, ...ratio(measured, 'now', 'base', 'perSecond')])
  }
  return rows
}

// Every order is followed by its reverse, and every second round another peer begins. The first round only warms up.
async function alternate(names, rounds, once) {
  const measured = []
  for (let round = -1; round < rounds; round++) {
    const start = (Math.max(round, 0) >> 1) % names.length
    const order = [...names.slice(start), ...names.slice(0, start)]
    const each = {}
    for (const name of round % 2 ? order.toReversed() : order) each[name] = await once(name)
    if (round >= 0) measured.push(each)
  }
  return measured
}

function filled(row) {
  return [...row, ...Array.from({ length: 9 - row.length }, () => '')]
}

function ratio(measured, one, other, unit) {
  const ratios = measured.map((round) => round[one][unit] / round[other][unit])
  return [median(ratios).toFixed(3), `${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)}`]
}

function started(children, name, file, dist) {
  const env = dist === undefined ? {} : { BENCH_DIST: pathToFileURL(join(dist, 'dist/')).href }
  const child = startChild(name, new URL(file, import.meta.url), env)
  children.push(child)
  return child
}

function checkOut(commit) {
  const folder = join(mkdtempSync(join(tmpdir(), 'rally-base-')), 'checkout')
  run('git', ['worktree', 'add', '--detach', folder, commit], root)
  return folder
}

// The dependencies are those of this checkout: a base that needs others must be built with its own.
function build(folder) {
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  run('node', ['scripts/build.mjs'], folder)
  rmSync(join(folder, 'dist-examples'), { recursive: true, force: true })
}

function run(command, args, cwd) {
  const { status, error, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  if (error) throw error
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed: ${stderr}`)
}
