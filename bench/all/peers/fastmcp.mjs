// FastMCP in its fastest documented form: HTTP streaming, stateless, with JSON responses in place of event streams.
import { FastMCP } from 'fastmcp'
import { z } from 'zod'
import { announce } from '../../peers/announce.mjs'
import { freePort } from './free-port.mjs'

const server = new FastMCP({ name: 'bench', version: '1.0.0', ping: { enabled: false } })
server.addTool({
  name: 'add',
  description: 'Adds two numbers',
  parameters: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => String(a + b),
})
const port = await freePort()
await server.start({
  transportType: 'httpStream',
  httpStream: { port, host: '127.0.0.1', stateless: true, enableJsonResponse: true },
})
announce(port)
