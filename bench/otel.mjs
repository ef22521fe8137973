// What OpenTelemetry costs: the same calls to an app without observers, with otel() but no SDK, and with the real SDK, whose exporter
// drops everything. Without a network, so that nothing else is measured. Each runs in processes of its own, in turn with the others.
// `node bench/otel.mjs [calls]` after a build prints calls per second and ratios.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import { rally } from 'mcp-rally'
import { otel } from 'mcp-rally/otel'
import { median } from './median.mjs'

const TURNS = 3
const CASES = ['no observers', 'otel without an SDK', 'otel with the SDK']
const TOOLS = ['plain', 'three_steps']

const _meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}

const [, , given = '20000', only] = process.argv
const calls = Number(given)
if (only === undefined) await compare()
else console.log(JSON.stringify(await measure(only)))

async function compare() {
  const run = promisify(execFile)
  const rates = new Map(CASES.map((name) => [name, []]))
  for (let turn = 0; turn < TURNS; turn += 1) {
    for (const name of CASES) {
      const { stdout } = await run(process.execPath, [fileURLToPath(import.meta.url), given, name])
      rates.get(name).push(JSON.parse(stdout))
    }
  }
  for (const [index, tool] of TOOLS.entries()) {
    const of = (name) => median(rates.get(name).map((each) => each[index]))
    for (const name of CASES) {
      console.log(
        `${tool}, ${name}: ${Math.round(of(name))} calls/s, ${(of(CASES[0]) / of(name)).toFixed(2)} times the cost`,
      )
    }
  }
}

async function measure(name) {
  const app = rally({
    name: 'bench',
    version: '1',
    keys: ['a secret of the benchmark, long enough'],
    strict: false,
    observers: name === 'no observers' ? [] : [otel()],
  })
  app
    .tool('plain', {}, () => 'done')
    .tool('three_steps', {}, async (_args, io) => {
      for (const index of [1, 2, 3]) await io.step(`s${index}`, () => index)
      return 'done'
    })
  if (name === 'otel with the SDK') register()
  const rates = []
  for (const tool of TOOLS) {
    await callsPerSecond(app, tool)
    rates.push(await callsPerSecond(app, tool))
  }
  return rates
}

function register() {
  const dropping = { export: (_spans, done) => done({ code: 0 }), shutdown: async () => {}, forceFlush: async () => {} }
  new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(dropping)] }).register()
}

async function callsPerSecond(app, tool) {
  const params = { name: tool, _meta }
  const start = performance.now()
  for (let id = 0; id < calls; id += 1) await app.dispatch({ jsonrpc: '2.0', id, method: 'tools/call', params })
  return calls / ((performance.now() - start) / 1_000)
}
