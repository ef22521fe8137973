// mcp-use in its fastest documented form: stateless, without telemetry, in production.
import { z } from 'zod'
import { announce } from '../../peers/announce.mjs'
import { freePort } from './free-port.mjs'

process.env.MCP_USE_ANONYMIZED_TELEMETRY = 'false'
const { MCPServer, text } = await import('mcp-use/server')

const server = new MCPServer({ name: 'bench', version: '1.0.0', host: '127.0.0.1', stateless: true })
server.tool({ name: 'add', schema: z.object({ a: z.number(), b: z.number() }) }, async ({ a, b }) =>
  text(String(a + b)),
)
const port = await freePort()
await server.listen(port)
announce(port)
