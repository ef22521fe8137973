// A server whose first step the test ends. It is process 1 of its container, if the test makes it so.
import { once } from 'node:events'
import { rally } from 'mcp-rally'
import { serve } from 'mcp-rally/node'

const app = rally({ name: 'contained', version: '1.0.0', keys: process.env.RALLY_KEYS.split(',') })
app.tool('work', {}, async (_args, io) => {
  const first = await io.step('first', async () => {
    console.log('first step')
    if (process.env.WAITS) await once(process.stdin, 'data')
    return process.env.INSTANCE
  })
  const second = await io.step('second', () => process.env.INSTANCE)
  return `first on ${first}, second on ${second}`
})
const { url } = await serve(app, { port: 0, drainDelayMs: 300, drainMs: 20_000 })
console.log(`process ${process.pid} is listening on ${url}`)
