// A client with a small heap, at a hostile server. WIRE, ADDRESS, TOOL, ARGUMENTS, OPTIONS and CALLS (how many at once) are in
// its environment. Prints what happened, how long it took and how large the process became.
import { connect } from 'mcp-rally/client'

const {
  WIRE: wire,
  ADDRESS: address,
  TOOL: tool,
  ARGUMENTS: args,
  OPTIONS: options = '{}',
  CALLS: calls = '1',
} = process.env
const server = wire === 'stdio' ? JSON.parse(address) : address
const asked = []
const client = await connect(server, {
  ...(wire === 'fetch' && { fetch: (url, init) => fetch(url, init) }),
  timeoutMs: 120_000,
  ...JSON.parse(options),
  logger: { warn: () => {}, error: () => {} },
  // A user who takes long, in front of a screen with all questions.
  onElicit: (question) => new Promise(() => asked.push(question)),
})
let most = 0
const timer = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), 10)
const began = performance.now()
const outcomes = await Promise.all(
  Array.from({ length: Number(calls) }, () =>
    client.callTool(tool, JSON.parse(args)).then(
      ({ content: [{ text }] }) => `a text of ${text.length}`,
      ({ code }) => code,
    ),
  ),
)
const ms = Math.round(performance.now() - began)
clearInterval(timer)
const next = await client.callTool('ping').then(({ content: [{ text }] }) => text)
console.log(
  JSON.stringify({ outcomes, next, ms, mb: Math.round(Math.max(most, process.memoryUsage.rss()) / 1_000_000) }),
)
await client.close()
