// Our server, for clients of others: over stdio, or over HTTP on the port that is its argument.
import { rally } from '../../dist/index.js'
import { serve, stdio } from '../../dist/node.js'

const app = rally({ name: 'ours', version: '1.0.0', keys: ['wEnPmYb6WeTzMwlmDJzMwqPmBH9zHhK7TMUJJ4ZVkQk='] })
const input = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
app.tool('greet', { description: 'Greets', input }, ({ name }) => `Hello, ${String(name)}`)
app.tool('deploy', { description: 'Deploys, if the user agrees' }, async (_args, io) =>
  (await io.confirm('sure', 'Deploy?')) ? 'Deployed' : 'Not deployed',
)
const [port] = process.argv.slice(2)
if (port === undefined) await stdio(app)
else await serve(app, { port: Number(port) })
