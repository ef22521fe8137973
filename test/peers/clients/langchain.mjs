import { MultiServerMCPClient } from '@langchain/mcp-adapters'
import { report, target } from './target.mjs'

const server = target.url === undefined ? { transport: 'stdio', ...target } : { transport: 'http', url: target.url }
const client = new MultiServerMCPClient({ mcpServers: { ours: server } })
const tools = await client.getTools()
const named = (name) => tools.find((tool) => tool.name === name)
const greeted = await named('greet').invoke({ name: 'Ada' })
const deployed = await named('deploy')
  .invoke({})
  .catch(({ message }) => message)
await client.close()
report(tools, greeted, deployed)
