// Inside an Express server, beside other routes: node examples/09-express.mjs
import express from 'express'
import { rally } from 'mcp-rally'
import { nodeHandler } from 'mcp-rally/node'

const app = rally({ name: 'shop', version: '1.0.0' })
app.tool('checkout', {}, async (_args, io) => ((await io.confirm('pay', 'Pay 12 EUR?')) ? 'Paid.' : 'Not paid.'))

const server = express()
server.get('/', (_request, response) => void response.send('The shop'))
server.all('/mcp', express.json(), nodeHandler(app))

const listening = server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () =>
  console.log(`Listening on http://127.0.0.1:${listening.address().port}/mcp`),
)
