// The process of the journal section. It brings a flow to so many entries, and then runs the next round again and again: a state may be
// sent again as long as the app has no `once`. The round opens the state, replays the entries, takes an answer, asks again and seals.
import { importBuilt } from '../dist.mjs'
import { median } from '../median.mjs'

const { rally } = await importBuilt('index.js')

const input = { type: 'object', properties: { entries: { type: 'number' } } }
const schema = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] }
const _meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
}
// Past 8 KiB of state every round logs a warning, which would be measured too.
const logger = { warn: () => {}, error: (message) => console.error(message) }
const app = rally({ name: 'bench', version: '1.0.0', keys: ['a bench key of at least thirty-two bytes'], logger })

const mostQuestions = 250
const asks = Object.fromEntries(Array.from({ length: mostQuestions }, (_, n) => [`question-${n}`, schema]))

app.tool('answers', { input, asks }, async (_args, io) => {
  for (let n = 0; ; n += 1) await io.ask(`question-${n}`, 'Go on?')
})
app.tool('steps', { input, asks }, async ({ entries }, io) => {
  for (let n = 0; n < entries; n += 1) await io.step(`step-${n}`, () => ({ id: n, status: 'created' }))
  for (let n = 0; ; n += 1) await io.ask(`question-${n}`, 'Go on?')
})

process.on('disconnect', () => process.exit())
process.on('message', (order) => {
  measure(order).then(
    (measured) => process.send(measured),
    (error) => process.send({ error: error.stack }),
  )
})
process.send({ isReady: true })

async function measure({ kind, entries, milliseconds, rounds }) {
  const request = await grown(kind, entries)
  await timed(request, milliseconds)
  const taken = []
  for (let round = 0; round < rounds; round += 1) taken.push(await timed(request, milliseconds))
  return {
    cpuMicroseconds: Number(median(taken).toFixed(1)),
    tokenBytes: request.params.requestState.length,
  }
}

/** The request of the round after so many entries. */
async function grown(kind, entries) {
  let request = requestOf(kind, entries, {})
  const answered = kind === 'answers' ? entries : 0
  for (let n = 0; n <= answered; n += 1) {
    const { requestState } = await dispatch(request)
    const inputResponses = { [`question-${n}`]: { action: 'accept', content: { ok: true } } }
    request = requestOf(kind, entries, { requestState, inputResponses })
  }
  return request
}

function requestOf(kind, entries, more) {
  return { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: kind, arguments: { entries }, _meta, ...more } }
}

/** CPU time of one dispatch, all threads. */
async function timed(request, milliseconds) {
  let count = 0
  const before = process.cpuUsage()
  for (const end = performance.now() + milliseconds; performance.now() < end; count += 1) await app.dispatch(request)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / count
}

async function dispatch(request) {
  const { text } = await app.dispatch(request)
  const { result } = JSON.parse(text)
  if (result?.resultType !== 'input_required') throw new Error(`The flow should ask, got ${text}`)
  return result
}
