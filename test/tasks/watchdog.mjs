// One process with tasks: tells how many threads it has started, and ends by itself.
import { createRequire, syncBuiltinESMExports } from 'node:module'
import { MemoryStore, rally } from 'mcp-rally'
import { connect } from 'mcp-rally/client'

const { hasStore, call, blockMs = 0, tasks } = JSON.parse(process.env.OPTIONS)

const threads = createRequire(import.meta.url)('node:worker_threads')
let started = 0
threads.Worker = class extends threads.Worker {
  constructor(...args) {
    super(...args)
    started += 1
  }
}
syncBuiltinESMExports()

const app = rally({ name: 'watched', version: '1', ...(hasStore && { store: new MemoryStore(), tasks }) })
app.tool('work', hasStore ? { task: 'always' } : {}, async (_args, io) => {
  // A turn of the event loop, so that the thread can start.
  await io.step('wait', () => new Promise((resolve) => setTimeout(resolve, 300)))
  const until = Date.now() + blockMs
  while (Date.now() < until);
  return 'Done.'
})
app.work()
for (let calls = 0; calls < Number(call); calls += 1) {
  const client = await connect(app)
  const { content } = await client.callTool('work')
  console.log(content[0].text)
  await client.close()
}
console.log(`${started} threads`)
