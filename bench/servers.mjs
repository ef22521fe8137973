// Requests per second of servers, each a process of its own, in rounds. Two runs use it: `npm run bench` and `npm run bench -- all`.
import { startChild } from './child.mjs'

const here = (file) => new URL(`./peers/${file}.mjs`, import.meta.url)
const older = (file) => ({ file, dialect: '2025-11-25', scenarios: ['plain'] })

export const servers = {
  echo: { file: here('echo') },
  byHand: { file: here('by-hand') },
  rally: { file: here('rally') },
  bearer: { file: here('bearer') },
  official: { file: here('official') },
  tuned: { file: here('tuned') },
  v1: older(here('v1')),
  fastmcp: older(new URL('./all/peers/fastmcp.mjs', import.meta.url)),
  mcpUse: older(new URL('./all/peers/mcp-use.mjs', import.meta.url)),
}

/** On a busy machine a server may get no turn in one measurement. */
const attempts = 3

/**
 * Round by round through every case, so that a slow spell of the machine falls on all of them. Within a case the peers follow one another
 * in an order that changes. A peer that fails is left out from then on, and `failures` says why.
 */
export async function measureServers({ scenarios, connections, peers: names, rounds, milliseconds, warmup }) {
  const generator = startChild('the load generator', new URL('./load.mjs', import.meta.url))
  const failures = {}
  const peers = []
  const orFailed = async (name, work, left = attempts) => {
    try {
      return await work()
    } catch (error) {
      if (left > 1) return orFailed(name, work, left - 1)
      failures[name] = error.message
    }
  }
  const going = () => peers.filter(({ name }) => failures[name] === undefined)
  try {
    for (const name of names) await orFailed(name, async () => void peers.push(await startServer(name)), 1)
    for (const scenario of scenarios)
      for (const peer of going().filter(({ scenarios: able }) => able.includes(scenario))) {
        const order = { scenario, connections: Math.max(...connections), milliseconds: warmup }
        await orFailed(peer.name, () => measureOnce(generator, peer, order))
      }

    const cases = scenarios.flatMap((scenario) =>
      connections.map((count) => ({ scenario, connections: count, rounds: [] })),
    )
    for (let round = 0; round < rounds; round++) {
      progress(`round ${round + 1} of ${rounds}`)
      for (const { scenario, connections: count, rounds: done } of cases) {
        const measured = {}
        for (const peer of inTurn(going(), round)) {
          if (!peer.scenarios.includes(scenario)) continue
          const order = { scenario, connections: count, milliseconds }
          measured[peer.name] = await orFailed(peer.name, () => measureOnce(generator, peer, order))
        }
        done.push(measured)
      }
    }
    progress('')
    for (const each of cases) each.rounds = each.rounds.map(ofThose(names, failures))
    return { cases, failures }
  } finally {
    generator.stop()
    for (const { process } of peers) process.stop()
  }
}

/** A running server: its process, and what the generator must know to speak to it. */
export async function startServer(name) {
  const { file, dialect, scenarios = ['plain', 'sealed'] } = servers[name]
  const process = startChild(name, file)
  try {
    const { port, authorization } = await process.next(30_000)
    return { name, process, scenarios, port, authorization, dialect }
  } catch (error) {
    process.stop()
    throw error
  }
}

async function measureOnce(generator, { name, process, port, authorization, dialect }, order) {
  try {
    const before = await process.ask('cpu')
    const counted = await generator.ask({ port, authorization, dialect, ...order }, order.milliseconds + 10_000)
    const after = await process.ask('cpu')
    return { ...counted, cpuMicroseconds: (after.cpuMicroseconds - before.cpuMicroseconds) / counted.requests }
  } catch (error) {
    throw new Error(`${name}, ${order.scenario}, ${order.connections} connections: ${error.message}`, { cause: error })
  }
}

/** What was measured of a round, in the order of `names`, without the peers that failed in some round. */
function ofThose(names, failures) {
  return (measured) =>
    Object.fromEntries(
      names.filter((name) => name in measured && failures[name] === undefined).map((name) => [name, measured[name]]),
    )
}

// Every order is followed by its reverse, and every second round another peer begins.
function inTurn(peers, round) {
  const start = (round >> 1) % peers.length
  const order = [...peers.slice(start), ...peers.slice(0, start)]
  return round % 2 ? order.toReversed() : order
}

function progress(text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001B[K${text}`)
}
