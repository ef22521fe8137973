// The server that is attacked, with a small heap. Tells its memory and connections when it is asked.
import { MemoryStore, rally } from 'mcp-rally'
import { serve } from 'mcp-rally/node'
import { sqlite } from 'mcp-rally/sqlite'

// `app` is there if callers have principals: then the app has a store, too.
const { serve: serveOptions, app: appOptions } = JSON.parse(process.env.OPTIONS)
const { file, ...limited } = appOptions ?? {}

const text = (bytes) => 'x'.repeat(bytes)
const input = { type: 'object', additionalProperties: true }
const store = () => (file === undefined ? new MemoryStore() : sqlite(file, { synchronous: 'normal' }))

const app = rally({
  name: 'attacked',
  version: '1.0.0',
  keys: ['a secret of the tests of attacks, long enough'],
  logger: { warn() {}, error() {} },
  ...(appOptions && { store: store() }),
  ...limited,
})
app.tool('greet', {}, () => 'Hello')
app.tool('wait', { input }, () => new Promise(() => {}))
app.tool('large', { input }, ({ bytes }) => text(bytes))
app.tool('report', { input }, async ({ bytes }, io) => {
  for (;;) {
    io.log('info', text(bytes))
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
})
app.tool('compute', { input }, ({ ms }) => {
  const until = performance.now() + ms
  while (performance.now() < until);
  return 'Computed'
})
app.tool('ask', {}, async (_args, io) => ((await io.confirm('sure', 'Sure?')) ? 'Yes, sure.' : 'No.'))
app.tool('askTwo', {}, async (_args, io) => {
  const answers = await Promise.all([io.confirm('one', 'One?'), io.confirm('two', 'Two?')])
  return answers.join()
})
if (appOptions) {
  app.tool('work', { input: { type: 'object' }, task: 'always' }, async (_args, io) => {
    await io.confirm('sure', 'Sure?')
    return 'Done.'
  })
}
app.resource('note://one', { name: 'one' }, () => 'One')

const authenticate = (request) => ({ principal: request.header('x-principal') ?? 'nobody' })
const { port, server } = await serve(app, { port: 0, ...(appOptions && { authenticate }), ...serveOptions })

const used = () => {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
let peak = 0
setInterval(() => (peak = Math.max(peak, used())), 20).unref()

process.on('disconnect', () => process.exit())
process.on('message', () => {
  globalThis.gc()
  setImmediate(() => {
    globalThis.gc()
    server.getConnections((_error, connections) => process.send({ used: used(), peak, connections }))
  })
})
process.send({ port })
