import { MCPClient } from 'mcp-use/client'
import { report, target } from './target.mjs'

const onElicitation = async () => ({ action: 'accept', content: { confirm: true } })
const client = new MCPClient({ mcpServers: { ours: target } }, { onElicitation })
const session = await client.createSession('ours')
const tools = await session.listTools()
const greeted = await session.callTool('greet', { name: 'Ada' })
const deployed = await session.callTool('deploy', {})
await client.closeAllSessions()
report(tools, greeted, deployed)
