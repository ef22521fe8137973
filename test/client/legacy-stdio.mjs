// A server of the 2025 era over the standard streams, with the habits that its arguments name.
import { createInterface } from 'node:readline'

const habits = new Set(process.argv.slice(2))
const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
let isIntroduced = false

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (method === 'server/discover') {
    if (habits.has('silent')) continue
    if (habits.has('touchy')) process.exit(3)
    if (habits.has('slow') && !isIntroduced) continue
    if (habits.has('slow')) say({ id, result: { supportedVersions: ['2026-07-28'], capabilities: {} } })
    else if (habits.has('listing')) say({ id, result: { supportedVersions: ['2025-06-18'], capabilities: {} } })
    else if (habits.has('polite')) say({ id, result: {} })
    else say({ id, error: { code: -32600, message: 'Not initialized' } })
  } else if (method === 'initialize') {
    isIntroduced = true
    const serverInfo = { name: 'by hand', version: '1' }
    if (habits.has('slow')) say({ id, error: { code: -32601, message: 'Method not found' } })
    else say({ id, result: { protocolVersion: '2025-06-18', capabilities: {}, serverInfo } })
  } else if (method === 'tools/call') {
    if (params.name === 'die') process.exit(1)
    const text = isIntroduced ? `${params.name} in process ${process.pid}` : 'Who are you?'
    say({ id, result: { content: [{ type: 'text', text }] } })
  }
}
