// What the options `apps` and `page` cost clients that have forms of their own: the same requests to an app without them, with one, and
// with both. Without a network, so that nothing else is measured. Each runs in processes of its own, in turn with the others.
// `node bench/pages.mjs [requests]` after a build prints requests per second and ratios.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { rally } from 'mcp-rally'
import { median } from './median.mjs'

const TURNS = 5
const page = { url: 'https://mcp.example.com/ask', trustModelWithLink: true }
const CASES = { neither: {}, apps: { apps: true }, page: { page }, both: { apps: true, page } }
const REQUESTS = {
  'tools/call': { method: 'tools/call', params: { name: 'plain', arguments: {} } },
  'tools/list': { method: 'tools/list', params: {} },
}

const _meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
}

const [, , given = '50000', only] = process.argv
const count = Number(given)
if (only === undefined) await compare()
else console.log(JSON.stringify(await measure(only)))

async function compare() {
  const run = promisify(execFile)
  const rates = new Map(Object.keys(CASES).map((name) => [name, []]))
  for (let turn = 0; turn < TURNS; turn += 1) {
    for (const [name, measured] of rates) {
      const { stdout } = await run(process.execPath, [fileURLToPath(import.meta.url), given, name])
      measured.push(JSON.parse(stdout))
    }
  }
  for (const [index, request] of Object.keys(REQUESTS).entries()) {
    const of = (name) => rates.get(name).map((each) => each[index])
    for (const name of rates.keys()) {
      // Within one turn, because other work on the machine changes between them.
      const ratio = median(of(name).map((rate, turn) => rate / of('neither')[turn]))
      const rate = Math.round(median(of(name)))
      console.log(`${request}, ${name}: ${rate} requests/s, ${ratio.toFixed(2)} of the rate with neither`)
    }
  }
}

async function measure(name) {
  const logger = { warn() {}, error() {} }
  const keys = ['a secret of the benchmark, long enough']
  const app = rally({ name: 'bench', version: '1', keys, strict: false, logger, ...CASES[name] })
  app.tool('plain', {}, () => 'done')
  for (let each = 0; each < 20; each += 1) app.tool(`tool_${each}`, { description: 'One of many' }, () => 'done')
  const rates = []
  for (const { method, params } of Object.values(REQUESTS)) {
    const message = { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }
    for (let each = 0; each < count / 5; each += 1) await app.dispatch(message)
    const began = process.cpuUsage()
    for (let each = 0; each < count; each += 1) await app.dispatch(message)
    const { user, system } = process.cpuUsage(began)
    rates.push((count / (user + system)) * 1e6)
  }
  return rates
}
