// A server whose steps the test holds in its hands: each says that it runs, and ends when it is told to.
import { rally } from 'mcp-rally'
import { serve } from 'mcp-rally/node'

const { servers = 1, listeners = [], ...options } = JSON.parse(process.env.OPTIONS)
const say = (message) => process.send(message)
const open = new Map()

function newApp() {
  const app = rally({ name: 'drained', version: '1.0.0', keys: ['a secret of the drain tests, long enough'] })
  app.tool('greet', {}, () => 'Hello!')
  app.tool('work', {}, async (_args, io) => {
    for (const key of ['one', 'two', 'three']) {
      await io.step(key, ({ idempotencyKey, signal }) => {
        say({ running: key, idempotencyKey })
        signal.addEventListener('abort', () => say({ aborted: key }))
        return new Promise((resolve) => void open.set(key, resolve))
      })
    }
    return 'Done.'
  })
  return app
}

for (const { how, does, signal = 'SIGTERM' } of listeners) {
  process[how](signal, () => say({ listener: does }))
}
for (let i = 0; i < servers; i += 1) {
  const { url, server, close } = await serve(newApp(), { port: 0, ...options })
  server.on('close', () => say({ closed: url }))
  process.on('message', ({ command }) => {
    if (command === 'close') void close()
  })
  say({ url })
}
process.on('message', ({ command, step, ping }) => {
  if (step !== undefined) open.get(step)()
  // After everything that this turn brings.
  if (ping !== undefined) setImmediate(() => say({ pong: ping }))
  if (command === 'exit') process.exit(3)
})
// Nobody is left to end it.
process.on('disconnect', () => process.exit())
