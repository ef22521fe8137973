// Leaves a call waiting for its answer, its stream open and a stream of its own beside it, a client waiting for the rest of
// a call that it carries, and has nothing else to do.
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
// The same with a client that carries its call: it has been asked, and has come back for what follows.
const carrying = { ...params, capabilities: { elicitation: {}, state: { scopes: ['request'] } } }
const other = await post({ jsonrpc: '2.0', id: 0, method: 'initialize', params: carrying })
const carried = { 'Mcp-Session-Id': other.headers.get('mcp-session-id') }
const asked = await post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'ask' } }, carried)
const ids = [...(await asked.text()).matchAll(/^id: (.+)$/gm)].map(([, id]) => id)
const back = { Accept: 'text/event-stream', 'Last-Event-ID': ids.at(-1), ...carried }
const waiting = await ask({ method: 'GET', headers: back })
console.log([begun, call, listening, waiting].map((response) => response.headers.get('content-type')).join(' '))
