// The expense server in a process of its own, in production mode. Its ledger is in the hands of the test: it may wait for ever, or
// fail as a driver does, with a password in its message.
import { sqlite } from 'mcp-rally/sqlite'
import { serve, stdio } from 'mcp-rally/node'
import { expenseApp, memoryLedger } from '../../dist-examples/expenses.js'
import { acceptTokens } from '../../dist-examples/expenses-people.js'

const { key, file, fails, waits, caller } = JSON.parse(process.env.OPTIONS)
const ledger = memoryLedger()
const failing = async () => {
  throw new Error(`connect ECONNREFUSED ${fails}`)
}
const list = async (department) => {
  console.log(`listing ${department}`)
  return waits ? new Promise(() => {}) : ledger.list(department)
}

const app = expenseApp(
  {
    keys: ['a secret of the expense process, long enough'],
    ...(file && { store: sqlite(file), tasks: { leaseMs: 500, pollMs: 100 } }),
  },
  fails ? { ...ledger, add: failing, list: failing } : { ...ledger, list },
)
if (caller === undefined) {
  const { url } = await serve(app, { port: 0, authenticate: acceptTokens(key) })
  console.log(`listening on ${url}`)
} else {
  await stdio(app, { caller })
}
