// One instance of the poison drill. A supervisor starts another when it ends.
import { appendFileSync } from 'node:fs'
import { rally } from 'mcp-rally'
import { openStore } from './open-store.mjs'

const { store: where, leaseMs, watchdogMs, poison, log } = JSON.parse(process.env.OPTIONS)
const note = (message, details) =>
  appendFileSync(log, `${JSON.stringify({ message, ...details, error: String(details?.error) })}\n`)

const store = openStore(where)
const app = rally({
  name: 'poison',
  version: '1.0.0',
  keys: ['a secret of the poison drill, long enough'],
  logger: { warn: note, error: note },
  store,
  tasks: { leaseMs, watchdogMs, concurrency: 16 },
})

app.tool('innocent', { task: 'always' }, async (_args, io) => {
  for (const key of ['one', 'two', 'three']) {
    await io.step(key, () => new Promise((resolve) => setTimeout(resolve, 30)))
  }
  return 'done'
})

app.tool('poison', { task: 'always' }, async (_args, io) => {
  await io.step('first', () => {})
  await io.step('last', async () => {
    await new Promise((resolve) => setTimeout(resolve, 20))
    if (poison === 'exit') process.exit(1)
    if (poison === 'loop') for (;;);
    void Promise.reject(new Error('Nobody handles this.'))
    await new Promise(() => {})
  })
})

app.work()
// Its timers do not keep it alive, and neither does a task that never settles.
setInterval(() => {}, 1_000)
process.on('disconnect', () => process.exit())
