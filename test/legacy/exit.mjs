// Leaves a call waiting for its answer, its stream open and a stream of its own beside it, and has nothing else to do.
import { rally } from 'mcp-rally'

const app = rally({ name: 'exit', version: '1', keys: ['a secret of the exit test, long enough for it'] })
app.tool('ask', {}, (_args, io) => io.confirm('sure', 'Sure?'))

const ask = (init) => app.fetch(new Request('http://localhost/mcp', init))
const post = (body, headers = {}) =>
  ask({ method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body) })

const params = {
  protocolVersion: '2025-11-25',
  capabilities: { elicitation: {} },
  clientInfo: { name: 'exit', version: '1' },
}
const begun = await post({ jsonrpc: '2.0', id: 0, method: 'initialize', params })
const session = { 'Mcp-Session-Id': begun.headers.get('mcp-session-id') }
const call = await post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'ask' } }, session)
const listening = await ask({ method: 'GET', headers: { Accept: 'text/event-stream', ...session } })
console.log([begun, call, listening].map((response) => response.headers.get('content-type')).join(' '))
