// The expense server: `node dist-examples/expenses-server.js`, with --port N, or with --stdio USER for one person.
// EXPENSES_KEY has the key that signs tokens (a private JWK), RALLY_KEYS the secrets that seal states. --store is as in the demo.
import { parseArgs } from 'node:util'
import type { JWK } from 'jose'
import { serve, stdio } from 'mcp-rally/node'
import { expenseApp } from './expenses.ts'
import type { Person } from './expenses-people.ts'
import { acceptTokens, newKey, PEOPLE, tokenOf } from './expenses-people.ts'
import { openStore } from './store.ts'

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '3000' },
    stdio: { type: 'string' },
    store: { type: 'string', default: 'memory' },
  },
})
const { EXPENSES_KEY, RALLY_KEYS } = process.env
const app = expenseApp({
  store: await openStore(values.store),
  tasks: { leaseMs: 3_000, pollMs: 500 },
  ...(RALLY_KEYS !== undefined && { keys: RALLY_KEYS.split(',') }),
})

if (values.stdio === undefined) {
  const key = EXPENSES_KEY === undefined ? await newKey() : (JSON.parse(EXPENSES_KEY) as JWK)
  const { url } = await serve(app, { port: Number(values.port), authenticate: acceptTokens(key) })
  console.log(`The expense server is listening on ${url}`)
  for (const person of Object.keys(PEOPLE) as Person[]) {
    console.log(`\nAs ${person}:\n  RALLY_TOKEN=${await tokenOf(person, key)} npx mcp-rally tools ${url}`)
  }
} else {
  // The user who starts the process is the only caller.
  if (!Object.hasOwn(PEOPLE, values.stdio)) throw new Error(`--stdio takes ${Object.keys(PEOPLE).join(' or ')}.`)
  await stdio(app, { caller: { principal: values.stdio, ...PEOPLE[values.stdio as Person] } })
}
