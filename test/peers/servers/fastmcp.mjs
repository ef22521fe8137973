// A FastMCP server: over stdio, or over HTTP on the port that is its argument.
import { FastMCP } from 'fastmcp'
import { z } from 'zod'

const server = new FastMCP({ name: 'fastmcp', version: '1.0.0' })
server.addTool({
  name: 'greet',
  description: 'Greets',
  parameters: z.object({ name: z.string() }),
  execute: async ({ name }) => `Hello, ${name}`,
})
const [port] = process.argv.slice(2)
await server.start(
  port === undefined
    ? { transportType: 'stdio' }
    : { transportType: 'httpStream', httpStream: { port: Number(port), host: '127.0.0.1' } },
)
