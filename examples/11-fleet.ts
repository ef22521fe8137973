// One of several instances behind a load balancer without sticky sessions: each round of a call may reach another one.
//
//   RALLY_KEYS in the environment of all of them: node -p "crypto.randomBytes(32).toString('base64url')" prints one
//   PORT=3001 npx mcp-rally dev 11-fleet.ts, and the same with 3002 and 3003
//   haproxy -f 11-fleet.haproxy.cfg
import { rally } from 'mcp-rally'
import { serve } from 'mcp-rally/node'

const { RALLY_KEYS = '', PORT = '3001' } = process.env

const app = rally({ name: 'fleet', version: '1.0.0', keys: RALLY_KEYS.split(',') })

app.tool('which', {}, async (_args, io) => {
  const first = await io.step('first', () => PORT)
  const sure = await io.confirm('sure', 'Continue, wherever you are?')
  const last = await io.step('last', () => PORT)
  return `Began on ${first}, ${sure ? 'ended' : 'stopped'} on ${last}`
})

// SIGTERM drains: /readyz fails for a second, so that the load balancer looks elsewhere first.
const { url } = await serve(app, { port: Number(PORT), drainDelayMs: 1_000 })
console.log(`Listening on ${url}`)
