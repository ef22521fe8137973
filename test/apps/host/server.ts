// The app of the tests as a process of its own, with the built package: node server.mjs <port> <database>. SIGUSR2 completes the visit.
import { serve } from 'mcp-rally/node'
import { sqlite } from 'mcp-rally/sqlite'
import { makeApp } from '../app.ts'

const [, , port, database = ''] = process.argv
const { app, visited } = makeApp({
  // A call of the model that waits must not end before a slow machine has shown two forms.
  apps: { waitMs: 60_000 },
  store: sqlite(database),
  tasks: { pollMs: 100, watchdogMs: false },
})
process.on('SIGUSR2', visited)
await serve(app, { port: Number(port) })
