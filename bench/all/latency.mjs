// Latency at half of the capacity, open-loop: requests come at their times, whether or not earlier ones were answered.
import { startChild } from '../child.mjs'
import { median } from '../median.mjs'
import { pin } from '../overload.mjs'
import { startServer } from '../servers.mjs'
import { versionOf } from './extra.mjs'

const peers = ['rally', 'byHand', 'official']
const scenarios = ['plain', 'sealed']
const percentiles = ['p50', 'p90', 'p99', 'p999']
const connections = 256

export async function measureLatency({ quick }) {
  const seconds = quick ? 1 : 4
  const rounds = 3
  const generator = startChild('the generator', new URL('../open-loop.mjs', import.meta.url))
  pin(generator.pid, 1)
  const failures = {}
  const running = []
  try {
    for (const name of peers) {
      try {
        const server = await startServer(name)
        pin(server.process.pid, 0)
        running.push(server)
      } catch (error) {
        failures[name] = error.message
      }
    }
    const results = []
    for (const scenario of scenarios) {
      const once = ({ port }, rate, time) =>
        generator.ask({ port, scenario, connections, rate, milliseconds: time * 1000 }, (time + 30) * 1000)
      const cases = []
      for (const server of running)
        cases.push({ server, rate: (await capacityOf(server, once, seconds)) / 2, taken: [] })
      for (let round = 0; round < rounds; round += 1)
        for (const { server, rate, taken } of cases) taken.push(await once(server, rate, seconds))
      results.push(...cases.map((each) => summarize(scenario, each)))
    }
    return { rounds, seconds, versions: { official: versionOf('@modelcontextprotocol/server') }, failures, results }
  } finally {
    generator.stop()
    for (const { process } of running) process.stop()
  }
}

/** What 32 connections get that always have a request open. The first run only warms up. */
async function capacityOf(server, once, seconds) {
  const served = []
  for (let time = 0; time < 4; time += 1) served.push((await once(server, 'closed', seconds / 3)).served)
  return median(served.slice(1))
}

function summarize(scenario, { server, rate, taken }) {
  const middle = (field) => median(taken.map((each) => each[field]))
  return {
    scenario,
    peer: server.name,
    perSecond: Math.round(rate),
    requests: taken.reduce((sum, { requests }) => sum + requests, 0),
    failedPerSecond: Math.round(middle('failed')),
    ...Object.fromEntries(percentiles.map((name) => [name, Number(middle(name).toFixed(2))])),
  }
}
