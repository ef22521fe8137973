// A server over the standard streams that tells what it was started with.
import { rally } from 'mcp-rally'
import { stdio } from 'mcp-rally/node'

const app = rally({ name: 'started', version: '1.0.0' })

app.tool('about', {}, () => {
  const { GIVEN, PASSED, SECRET, RALLY_TOKEN } = process.env
  return JSON.stringify({ args: process.argv.slice(2), GIVEN, PASSED, SECRET, RALLY_TOKEN })
})

app.tool('sure', {}, async (_args, io) => String(await io.confirm('sure', 'Are you sure?')))

await stdio(app)
