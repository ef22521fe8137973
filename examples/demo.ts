// The demo server: `npm start`, with --port N or --stdio, and --store for its tasks. RALLY_KEYS has its secrets, separated
// by commas. The first one seals.
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { RallyError } from 'mcp-rally'
import { serve, stdio } from 'mcp-rally/node'
import { openStore } from './store.ts'
import { demoApp } from './tools.ts'
import { welcome } from './welcome.ts'

const USAGE = 'Usage: npm start -- [--port N | --stdio] [--store FILE | --store postgres://... | --store memory]'
const STORE = fileURLToPath(new URL('../rally-demo.db', import.meta.url))
/** After this time another process resumes the task of a demo that was killed. Short, so that you can watch it. */
const LEASE_MS = 3_000

try {
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: '3000' },
      stdio: { type: 'boolean' },
      store: { type: 'string', default: STORE },
    },
  })
  const port = toPort(values.port)
  const keys = readKeys(process.env['RALLY_KEYS'] ?? '')
  const store = await openStore(values.store)
  const app = demoApp({
    store,
    tasks: { leaseMs: LEASE_MS, pollMs: 500 },
    // In hosts that show MCP Apps and no forms, the questions are in a page.
    apps: true,
    ...(keys.length > 0 && { keys }),
  })
  if (values.stdio) {
    await stdio(app)
  } else {
    const { url } = await serve(app, { port })
    console.log(welcome(url, { isShared: keys.length > 0, isKept: values.store !== 'memory' }))
  }
} catch (error) {
  console.error(whatIsWrong(error))
  process.exitCode = 1
}

function readKeys(text: string): string[] {
  return text
    .split(',')
    .map((key) => key.trim())
    .filter((key) => key !== '')
}

function toPort(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535) {
    throw new Error(`--port ${text} is not a port. Use a number from 0 to 65535; 0 takes any free port.`)
  }
  return Number(text)
}

/** A sentence for the person who started the demo, not a stack. */
function whatIsWrong(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error ? String(error.code) : ''
  if (error instanceof RallyError && code === 'SECRET_INVALID') return `RALLY_KEYS: ${error.message}`
  if (code === 'EADDRINUSE' && 'port' in error) {
    return `Port ${String(error.port)} is in use. Use another one: --port 3001, or --port 0 for any free port.`
  }
  return code.startsWith('ERR_PARSE_ARGS') ? `${error.message}\n${USAGE}` : error.message
}
