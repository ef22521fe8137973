import { MCPClient } from '@mastra/mcp'
import { report, target } from './target.mjs'

const inputRequests = async () => ({ action: 'accept', content: { confirm: true } })
const server = target.url === undefined ? target : { url: new URL(target.url) }
const client = new MCPClient({ servers: { ours: { ...server, inputRequests } } })
const tools = await client.listTools()
const greeted = await tools.ours_greet.execute({ name: 'Ada' }, {})
const deployed = await tools.ours_deploy.execute({}, {})
await client.disconnect()
report(
  Object.keys(tools).map((name) => ({ name: name.replace('ours_', '') })),
  greeted,
  deployed,
)
