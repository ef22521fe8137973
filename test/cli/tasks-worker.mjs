// A process with a tool of five steps, on a store in a file. The world it works in is a folder: it notes there what its steps do, and
// a file there says which step ends the process, and which one fails.
import { appendFileSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { rally } from 'mcp-rally'
import { sqlite } from 'mcp-rally/sqlite'
import { serve } from 'mcp-rally/node'

const [file, world, worker] = process.argv.slice(2)

const app = rally({
  name: 'shop',
  version: '1.0.0',
  keys: ['a secret of the tests of rally tasks'],
  store: sqlite(file, { synchronous: 'normal', pollMs: 10 }),
  tasks: { leaseMs: 600, worker },
  logger: { warn: () => {}, error: () => {} },
})

const step = (io, key) =>
  io.step(key, async ({ idempotencyKey }) => {
    appendFileSync(join(world, 'log'), `${key} ${idempotencyKey}\n`)
    if (existsSync(join(world, `kills-${key}`))) {
      rmSync(join(world, `kills-${key}`))
      process.kill(process.pid, 'SIGKILL')
    }
    if (existsSync(join(world, `fails-${key}`))) throw new Error(`${key}: the carrier is \u001B]0;owned\u0007 down`)
    await new Promise((resolve) => void setTimeout(resolve, 20))
    return `${key} done, card 4242`
  })

app.tool('order', { task: 'always' }, async (_args, io) => {
  for (const key of ['reserve', 'charge', 'pack', 'label', 'ship']) await step(io, key)
  return 'On its way.'
})

const serving = await serve(app, { port: 0, handleSignals: false })
process.stdout.write(`${serving.url}\n`)
