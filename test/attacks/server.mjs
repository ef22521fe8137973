// A server to attack, in a process of its own. It says where it is, and how much memory it uses when it is asked.
import { MemoryStore, rally } from 'mcp-rally'
import { serve } from 'mcp-rally/node'
import { sqlite } from 'mcp-rally/sqlite'

const { file, ...options } = JSON.parse(process.env.OPTIONS)

const app = rally({
  name: 'attacked',
  version: '1.0.0',
  keys: ['a secret of the tests of attacks, long enough'],
  logger: { warn() {}, error() {} },
  store: file === undefined ? new MemoryStore() : sqlite(file, { synchronous: 'normal' }),
  ...options,
})
app.tool('greet', {}, () => 'Hello!')
app.tool('ask', {}, async (_args, io) => ((await io.confirm('sure', 'Sure?')) ? 'Yes, sure.' : 'No.'))
app.tool('work', { input: { type: 'object' }, task: 'always' }, async (_args, io) => {
  await io.confirm('sure', 'Sure?')
  return 'Done.'
})
app.resource('note://one', { name: 'one' }, () => 'One')

const authenticate = (request) => ({ principal: request.header('x-principal') ?? 'nobody' })
const { url } = await serve(app, { port: 0, authenticate })
process.send({ url })
process.on('message', () => {
  globalThis.gc()
  setImmediate(() => {
    globalThis.gc()
    const { heapUsed, external } = process.memoryUsage()
    process.send({ bytes: heapUsed + external })
  })
})
// Nobody is left to end it.
process.on('disconnect', () => process.exit())
