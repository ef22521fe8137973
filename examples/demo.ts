// The demo server: `npm start`, with --port N or --stdio. RALLY_KEYS holds its secrets, comma-separated; the first mints.
import { parseArgs } from 'node:util'
import { serve, stdio } from 'mcp-rally/node'
import { demoApp } from './tools.ts'

const { values } = parseArgs({ options: { port: { type: 'string', default: '3000' }, stdio: { type: 'boolean' } } })
const keys = (process.env['RALLY_KEYS'] ?? '').split(',').filter((key) => key !== '')
const app = demoApp(keys.length > 0 ? { keys } : {})

if (values.stdio) {
  await stdio(app)
} else {
  const { url } = await serve(app, { port: Number(values.port) })
  console.log(welcome(url))
}

function welcome(url: string): string {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
  }
  const call = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'deploy', arguments: { env: 'staging' }, _meta: meta },
  }
  return `
  Rally is listening on ${url}

  Begin a call; it comes back with a question and a requestState:

  curl -s ${url} -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \\
    -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/call' -H 'Mcp-Name: deploy' \\
    -d '${JSON.stringify(call)}'

  Answer it by sending the same request with a new id and, in params,
  "inputResponses": {"confirm": {"action": "accept", "content": {"confirm": true}}} and the "requestState" you got.
  ${keys.length > 0 ? 'Any process with the same RALLY_KEYS can take the answer.' : 'Set RALLY_KEYS to a secret of 32 characters or more, and any process that has it can take the answer.'}
`
}
