// The users of the memory section, in a process of their own. Each makes a call that asks, and leaves the question open.
import { Agent, request } from 'node:http'

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
}
const call = { method: 'tools/call', params: { name: 'deploy', arguments: { env: 'prod' } } }
const older = '2025-11-25'
const atATime = 32
const kinds = { sealed, session }

process.on('disconnect', () => process.exit())
process.on('message', ({ port, kind, count }) => {
  open(kinds[kind], port, count).then(
    (opened) => process.send(opened),
    (error) => process.send({ error: error.message }),
  )
})

async function open(ask, port, count) {
  const agent = new Agent({ keepAlive: true, maxSockets: atATime })
  let left = count
  let stateBytes = 0
  const some = async () => {
    while (left > 0) {
      left -= 1
      stateBytes = await ask(port, agent)
    }
  }
  await Promise.all(Array.from({ length: atATime }, some))
  // No connection is held but those of open streams.
  agent.destroy()
  return { stateBytes }
}

/** The response ends, and the client keeps the state. */
async function sealed(port, agent) {
  const message = { ...call, params: { ...call.params, _meta: meta } }
  const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'deploy' }
  const { body } = await post({ port, headers, agent }, message)
  const [, state] = /"requestState":"([^"]+)"/.exec(body) ?? []
  if (state === undefined) throw new Error(`The server should ask, got ${body}`)
  return state.length
}

/** The response is an event stream that stays open, on a connection of its own. */
async function session(port, agent) {
  const params = {
    protocolVersion: older,
    capabilities: { elicitation: {} },
    clientInfo: { name: 'bench', version: '1' },
  }
  const { headers } = await post({ port, agent }, { method: 'initialize', params })
  const inSession = { 'mcp-protocol-version': older, 'mcp-session-id': headers['mcp-session-id'] }
  await post({ port, headers: inSession, agent }, { method: 'notifications/initialized' })
  await post({ port, headers: inSession, agent: new Agent(), until: '"elicitation/create"' }, call)
  return 0
}

/** Resolves with the whole body, or as soon as the body contains `until`. */
function post({ port, headers = {}, agent: connections, until }, message) {
  const id = message.method.startsWith('notifications/') ? {} : { id: 1 }
  const text = JSON.stringify({ jsonrpc: '2.0', ...id, ...message })
  return new Promise((resolve, reject) => {
    const sent = request({
      host: '127.0.0.1',
      port,
      path: '/mcp',
      method: 'POST',
      agent: connections,
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'content-length': Buffer.byteLength(text),
        ...headers,
      },
    })
    sent.on('error', reject)
    sent.on('response', (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (part) => {
        body += part
        if (until !== undefined && body.includes(until)) resolve({ headers: response.headers, body })
      })
      response.on('end', () => {
        if (until === undefined && response.statusCode < 300) resolve({ headers: response.headers, body })
        else reject(new Error(`HTTP ${response.statusCode}, and the stream ended: ${body}`))
      })
    })
    sent.end(text)
  })
}
