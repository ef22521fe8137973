// The reference: what node:http itself allows. It collects and parses the body and answers JSON of the size that Rally's
// answer has (results-all.json records the sizes); it checks nothing, validates nothing and seals nothing.
import { createServer } from 'node:http'
import { announce } from './announce.mjs'

const state = 's'.repeat(336)
const _meta = { 'io.modelcontextprotocol/serverInfo': { name: 'bench', version: '1.0.0' } }
const complete = (text) => ({ resultType: 'complete', content: [{ type: 'text', text }], _meta })
const question = {
  method: 'elicitation/create',
  params: {
    mode: 'form',
    message: 'Deploy to prod?',
    requestedSchema: { type: 'object', properties: { confirm: { type: 'boolean' } }, required: ['confirm'] },
  },
}
const asking = { resultType: 'input_required', inputRequests: { confirm: question }, requestState: state, _meta }
const sum = complete('5')
const deployed = complete('Deployed to prod')

const server = createServer((request, response) => {
  const chunks = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', () => {
    const { id, params } = JSON.parse(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks))
    const result = params.name === 'add' ? sum : params.requestState ? deployed : asking
    const body = JSON.stringify({ jsonrpc: '2.0', id, result })
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    response.end(body)
  })
})
server.listen(0, '127.0.0.1', () => announce(server.address().port))
