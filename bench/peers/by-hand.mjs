// The limit: the two tools written by hand on node:http, without a framework. It parses the same JSON, checks what the tools need,
// seals and opens the same amount of state with AES-256-GCM, and answers the same JSON. It has no protocol checks, no guards, no
// schemas, no limits and no replay.
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { announce } from './announce.mjs'

const lifeMilliseconds = 600_000
const key = createHash('sha256').update('a bench key of at least thirty-two bytes').digest()
const _meta = { 'io.modelcontextprotocol/serverInfo': { name: 'bench', version: '1.0.0' } }
const requestedSchema = { type: 'object', properties: { confirm: { type: 'boolean' } }, required: ['confirm'] }

const server = createServer((request, response) => {
  const chunks = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', () => {
    const { id, params } = JSON.parse(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks))
    const result = params.name === 'add' ? add(params.arguments) : deploy(params)
    const body = JSON.stringify({ jsonrpc: '2.0', id, result })
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    response.end(body)
  })
})
server.listen(0, '127.0.0.1', () => announce(server.address().port))

function add({ a, b }) {
  if (typeof a !== 'number' || typeof b !== 'number') throw new TypeError('a and b must be numbers')
  return complete(String(a + b))
}

function deploy({ arguments: { env }, inputResponses, requestState }) {
  if (typeof env !== 'string') throw new TypeError('env must be a string')
  if (requestState === undefined) return ask(env)
  const { tool, arguments: asked, expires } = open(requestState)
  if (tool !== 'deploy' || asked.env !== env || expires < Date.now()) throw new Error('the state is for another call')
  const { action, content } = inputResponses.confirm
  if (action !== 'accept' || typeof content.confirm !== 'boolean') throw new TypeError('confirm must be a boolean')
  return complete(content.confirm ? `Deployed to ${env}` : 'Left as it was.')
}

function ask(env) {
  const params = { mode: 'form', message: `Deploy to ${env}?`, requestedSchema }
  const inputRequests = { confirm: { method: 'elicitation/create', params } }
  const expires = Date.now() + lifeMilliseconds
  const requestState = seal({ tool: 'deploy', arguments: { env }, asked: { confirm: params }, expires })
  return { resultType: 'input_required', inputRequests, requestState, _meta }
}

function complete(text) {
  return { resultType: 'complete', content: [{ type: 'text', text }], _meta }
}

function seal(state) {
  const iv = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, iv)
  const sealed = [iv, cipher.update(JSON.stringify(state), 'utf8'), cipher.final(), cipher.getAuthTag()]
  return Buffer.concat(sealed).toString('base64url')
}

function open(text) {
  const bytes = Buffer.from(text, 'base64url')
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12))
  decipher.setAuthTag(bytes.subarray(-16))
  return JSON.parse(decipher.update(bytes.subarray(12, -16), undefined, 'utf8') + decipher.final('utf8'))
}
