// A server with tasks in a SQLite file, whose steps the test holds in its hands: each says that it runs, and ends when it is told to.
import { rally } from 'mcp-rally'
import { serve } from 'mcp-rally/node'
import { sqlite } from 'mcp-rally/sqlite'

const { file, leaseMs, ...options } = JSON.parse(process.env.OPTIONS)
const say = (message) => process.send(message)
const open = new Map()

const app = rally({
  name: 'office',
  version: '1.0.0',
  keys: ['a secret of the tests of tasks, long enough'],
  store: sqlite(file),
  tasks: { leaseMs },
})
app.tool('work', { task: 'always' }, async (_args, io) => {
  for (const key of ['one', 'two', 'three']) {
    await io.step(key, ({ idempotencyKey, signal }) => {
      say({ running: key, idempotencyKey })
      signal.addEventListener('abort', () => say({ aborted: key }))
      return new Promise((resolve) => void open.set(key, resolve))
    })
  }
  return `Done, ${await io.confirm('sure', 'Sure?')}.`
})

const { url } = await serve(app, { port: 0, ...options })
say({ url })
process.on('message', ({ step }) => open.get(step)())
// Nobody is left to end it.
process.on('disconnect', () => process.exit())
