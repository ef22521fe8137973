// The server that is attacked, with a small heap. OPTIONS are those of `serve`. Tells its memory and connections when it is asked.
import { rally } from 'mcp-rally'
import { serve } from 'mcp-rally/node'

const app = rally({ name: 'attacked', version: '1.0.0', logger: { warn() {}, error() {} } })
const text = (bytes) => 'x'.repeat(bytes)
const input = { type: 'object', additionalProperties: true }

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

const { port, server } = await serve(app, { port: 0, ...JSON.parse(process.env.OPTIONS) })
process.on('disconnect', () => process.exit())
process.on('message', () => {
  globalThis.gc()
  const { heapUsed, external } = process.memoryUsage()
  server.getConnections((_error, connections) => process.send({ used: heapUsed + external, connections }))
})
process.send({ port })
