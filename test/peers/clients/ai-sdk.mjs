import { createMCPClient, ElicitationRequestSchema } from '@ai-sdk/mcp'
import { Experimental_StdioMCPTransport as Stdio } from '@ai-sdk/mcp/mcp-stdio'
import { report, target } from './target.mjs'

const transport = target.url === undefined ? new Stdio(target) : { type: 'http', url: target.url }
const client = await createMCPClient({ transport, capabilities: { elicitation: {} } })
client.onElicitationRequest(ElicitationRequestSchema, () => ({ action: 'accept', content: { confirm: true } }))
const { tools } = await client.listTools()
const greeted = await client.callTool({ name: 'greet', arguments: { name: 'Ada' } })
const deployed = await client.callTool({ name: 'deploy', arguments: {} })
await client.close()
report(tools, greeted, deployed)
