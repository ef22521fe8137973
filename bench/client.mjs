// `npm run bench -- client`: flows per second of Rally's client with Rally's server and of the official pair, and what a flow
// costs either client at the same server. A flow is the call of a tool that asks for confirmation: two rounds.
import { parseArgs } from 'node:util'
import { startChild } from './child.mjs'
import { median } from './median.mjs'
import { table } from './table.mjs'

const clients = {
  rally: new URL('./client-rally.mjs', import.meta.url),
  official: new URL('./client-official.mjs', import.meta.url),
}
const servers = {
  rally: new URL('./peers/rally.mjs', import.meta.url),
  official: new URL('./peers/official.mjs', import.meta.url),
  tuned: new URL('./peers/tuned.mjs', import.meta.url),
}
const pairings = [
  { client: 'rally', server: 'rally' },
  { client: 'official', server: 'rally' },
  { client: 'official', server: 'official' },
  { client: 'official', server: 'tuned' },
]
const callsAtATime = [32, 1]
/** On a busy machine a client may get no turn in one measurement. */
const attempts = 3
const children = []

export async function benchClients(args) {
  const { values } = parseArgs({ args, options: { quick: { type: 'boolean', default: false } } })
  print(await measureClients({ rounds: values.quick ? 3 : 9 }))
}

/** The children that it needs end with it. */
export async function measureClients({ rounds, milliseconds = 1000, warmup = 2000 }) {
  try {
    return (await measure({ rounds, milliseconds, warmup })).map(summarize)
  } finally {
    for (const { stop } of children.splice(0)) stop()
  }
}

async function measure({ rounds, milliseconds, warmup }) {
  const ports = {}
  for (const [name, file] of Object.entries(servers)) ports[name] = (await child(`${name} server`, file).next()).port
  const started = Object.fromEntries(
    Object.entries(clients).map(([name, file]) => [name, child(`${name} client`, file)]),
  )
  const once = async ({ client, server }, calls, time, left = attempts) => {
    try {
      return await started[client].ask({ port: ports[server], calls, milliseconds: time }, time + 10_000)
    } catch (error) {
      if (left === 1) throw error
      return once({ client, server }, calls, time * 2, left - 1)
    }
  }
  for (const pairing of pairings) await once(pairing, Math.max(...callsAtATime), warmup)

  const cases = callsAtATime.map((calls) => ({ calls, rounds: [] }))
  for (let round = 0; round < rounds; round++)
    for (const each of cases) {
      const measured = {}
      for (const pairing of inTurn(round)) measured[nameOf(pairing)] = await once(pairing, each.calls, milliseconds)
      each.rounds.push(measured)
    }
  return cases
}

// Every order is followed by its reverse, and every second round another pairing begins.
function inTurn(round) {
  const start = (round >> 1) % pairings.length
  const order = [...pairings.slice(start), ...pairings.slice(0, start)]
  return round % 2 ? order.toReversed() : order
}

function nameOf({ client, server }) {
  return `${client} client, ${server} server`
}

// Ratios are medians of those within each round, whose measurements are neighbours in time.
function summarize({ calls, rounds }) {
  const [ours, mixed, theirs, tuned] = pairings.map(nameOf)
  const ratio = (one, other, field) =>
    rounded(median(rounds.map((round) => round[one][field] / round[other][field])), 2)
  return {
    calls,
    pairings: Object.fromEntries(
      pairings.map(nameOf).map((name) => {
        const middle = (field) => median(rounds.map((round) => round[name][field]))
        return [
          name,
          {
            flowsPerSecond: Math.round(middle('perSecond')),
            clientCpuMicroseconds: rounded(middle('cpuMicroseconds'), 1),
          },
        ]
      }),
    ),
    ratios: {
      'flows per second, rally pair to official pair': ratio(ours, theirs, 'perSecond'),
      'flows per second, rally pair to official client with tuned server': ratio(ours, tuned, 'perSecond'),
      'client CPU at the same server, official to rally': ratio(mixed, ours, 'cpuMicroseconds'),
    },
  }
}

function print(cases) {
  for (const { calls, pairings: measured, ratios } of cases) {
    console.log(
      table(
        [`${calls} call${calls === 1 ? '' : 's'} at a time`, 'flows per second', 'client CPU per flow, µs'],
        Object.entries(measured).map(([name, { flowsPerSecond, clientCpuMicroseconds }]) => [
          name,
          flowsPerSecond.toLocaleString('en'),
          clientCpuMicroseconds.toFixed(1),
        ]),
      ),
    )
    for (const [name, ratio] of Object.entries(ratios)) console.log(`${name}: ${ratio.toFixed(2)}`)
    console.log()
  }
}

function child(name, file) {
  const started = startChild(name, file)
  children.push(started)
  return started
}

function rounded(value, digits) {
  return Number(value.toFixed(digits))
}
