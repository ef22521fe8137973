// `npm run bench -- overload`: what is served past the capacity. The load is open-loop: requests come at their times, whether or not
// earlier ones were answered. Server and generator have a core each (`taskset`), or the numbers say nothing.
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { startChild } from './child.mjs'
import { table } from './table.mjs'

const tools = {
  compute: 'computes for about 2 ms',
  crunch: 'computes for about 10 ms',
  wait: 'waits for one of 8 places, 5 ms each',
}
const factors = [0.5, 1, 2, 4]

export async function benchOverload(args) {
  const { values } = parseArgs({
    args,
    options: { quick: { type: 'boolean', default: false }, connections: { type: 'string', default: '2000' } },
  })
  const seconds = values.quick ? 4 : 10
  const connections = Number(values.connections)
  const server = startChild('the server', new URL('./peers/overload.mjs', import.meta.url))
  const generator = startChild('the generator', new URL('./open-loop.mjs', import.meta.url))
  try {
    pin(server.pid, 0)
    pin(generator.pid, 1)
    const { port } = await server.next()
    const rows = []
    for (const [tool, about] of Object.entries(tools)) {
      const measure = async (rate, time = seconds) => {
        const before = await server.ask('cpu')
        const order = { port, scenario: tool, connections, rate, milliseconds: time * 1000 }
        const counted = await generator.ask(order, (time + 20) * 1000)
        const after = await server.ask('cpu')
        const cpuSeconds = (after.cpuMicroseconds - before.cpuMicroseconds) / 1e6
        const perCpuSecond = counted.answers.served / cpuSeconds
        return { ...counted, perCpuSecond, serverLoad: cpuSeconds / counted.seconds }
      }
      const capacityNow = () => measure('closed', seconds / 2)
      const { served: estimate } = await warmedUp(capacityNow)
      let before = await capacityNow()
      for (const factor of factors) {
        const { offered, served, refused, failed, p50, p99, perCpuSecond, serverLoad, generatorLoad } = await measure(
          estimate * factor,
        )
        // The machine may be faster in one minute than in the next.
        const after = await capacityNow()
        const capacity = (before.served + after.served) / 2
        const atCapacity = (before.perCpuSecond + after.perCpuSecond) / 2
        before = after
        rows.push([
          `${tool}: ${about}`,
          `${factor} x`,
          Math.round(offered),
          Math.round(served),
          `${Math.round((100 * served) / capacity)} %`,
          `${Math.round((100 * perCpuSecond) / atCapacity)} %`,
          Math.round(refused),
          Math.round(failed),
          `${p50.toFixed(1)}`,
          `${p99.toFixed(1)}`,
          `${Math.round(100 * serverLoad)} %`,
          `${Math.round(100 * generatorLoad)} %`,
        ])
      }
    }
    const heads = ['tool', 'load', 'offered/s', 'served/s', 'of capacity', 'per CPU s']
    const more = ['503/s', 'failed/s', 'p50 ms', 'p99 ms', 'server', 'generator']
    console.log(table([...heads, ...more], rows))
    console.log(
      '"per CPU s": served for each second of CPU time of the server, as a part of the same at capacity. Where the server',
    )
    console.log(
      'has nothing but its CPU to wait for, this is the goodput on a machine of its own, also if the machine is shared.',
    )
  } finally {
    server.stop()
    generator.stop()
  }
}

// The capacity is what 32 requests that are open all the time get: as many as the server can serve, and no queue worth the name.
async function warmedUp(capacityNow) {
  await capacityNow()
  return capacityNow()
}

/** Gives a process a core of its own. */
export function pin(pid, core) {
  const { status, error } = spawnSync('taskset', ['-a', '-cp', String(core), String(pid)])
  if (error || status !== 0) console.error('bench: taskset failed, so the processes are not pinned to a core each.')
}
