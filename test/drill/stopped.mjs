// A worker that may stop itself in the middle of a step, as SIGSTOP does it, and tells whether what it wrote then was taken.
import { rally } from 'mcp-rally'
import { z } from 'zod'
import { openStore } from './open-store.mjs'

const { store: where, keys, leaseMs, stopsAt } = JSON.parse(process.env.OPTIONS)

/** Resolves once the message is out of this process. */
const say = (message) => new Promise((resolve) => process.send(message, resolve))

const store = openStore(where)
const append = store.tasks.append.bind(store.tasks)
store.tasks.append = async (held, entries) => {
  const taken = await append(held, entries)
  void say({ taken })
  return taken
}

const app = rally({ name: 'stopped', version: '1.0.0', keys, store, tasks: { leaseMs } })

app.tool('work', { input: z.object({ name: z.string() }), task: 'always' }, async ({ name }, io) => {
  const by = await io.step('step', async () => {
    if (name !== stopsAt) return process.pid
    await say({ stopping: name })
    // By itself, so that it is never in the middle of a write: a process that is stopped there keeps a SQLite file locked.
    process.kill(process.pid, 'SIGSTOP')
    return process.pid
  })
  return `${name} was done by ${by}`
})

app.work()
await say({ pid: process.pid })
// Nothing else keeps it alive, and nobody else ends it.
process.on('message', () => {})
process.on('disconnect', () => process.exit())
