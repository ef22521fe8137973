// A hostile server of revision 2025-11-25 over the standard streams. A call makes it send far more than a client may keep.
const MB = 1_000_000
const MANY = 200

const result = (id, value) => `${JSON.stringify({ jsonrpc: '2.0', id, result: value })}\n`
const question = (id, message) => {
  const requestedSchema = { type: 'object', properties: { yes: { type: 'boolean' } } }
  return `${JSON.stringify({ jsonrpc: '2.0', id, method: 'elicitation/create', params: { message, requestedSchema } })}\n`
}
const text = (said) => ({ content: [{ type: 'text', text: said }] })

const TRICKS = {
  ping: () => '',
  asks_under_long_ids: (n) => question(`${n} ${'i'.repeat(MB)}`, 'Well?'),
  asks_at_length: (n) => question(`q${n}`, 'm'.repeat(MB)),
}

export function answerOlder({ id, method, params }, say) {
  if (method === 'server/discover') {
    return say(`${JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } })}\n`)
  }
  if (method === 'initialize') {
    const serverInfo = { name: 'older', version: '1' }
    return say(result(id, { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo }))
  }
  if (method !== 'tools/call') return undefined
  const first = id * MANY
  const pour = (n) => {
    if (n === first + MANY || params.name === 'ping') return void say(result(id, text('pong')))
    if (say(TRICKS[params.name](n))) setImmediate(pour, n + 1)
    else process.stdout.once('drain', () => pour(n + 1))
  }
  return pour(first)
}
