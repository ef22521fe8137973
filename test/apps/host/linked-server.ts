// The app of the tests as a process of its own that asks by a link: node linked-server.mjs <port> <database>. The cookie names the
// user. SIGUSR2 completes the visit.
import { serve } from 'mcp-rally/node'
import { sqlite } from 'mcp-rally/sqlite'
import { makeApp } from '../app.ts'

const [, , port = '', database = ''] = process.argv
const { app, visited } = makeApp({
  apps: false,
  page: {
    url: `http://127.0.0.1:${port}/ask`,
    waitMs: 5_000,
    identify: ({ header }) => /user=(\w+)/.exec(header('cookie') ?? '')?.[1],
  },
  store: sqlite(database),
  tasks: { pollMs: 100, watchdogMs: false },
})
process.on('SIGUSR2', visited)
await serve(app, {
  port: Number(port),
  authenticate: (request) => ({ principal: request.header('authorization')?.split(' ')[1] ?? 'nobody' }),
})
