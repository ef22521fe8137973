// Plain and sealed calls over 32 connections and one: Rally beside everything that can do the same.
import { summarize } from '../report.mjs'
import { measureServers } from '../servers.mjs'
import { installExtraPeers, versionOf } from './extra.mjs'

const peers = ['rally', 'byHand', 'echo', 'official', 'tuned', 'v1', 'fastmcp', 'mcpUse']
const extra = ['fastmcp', 'mcpUse']

export async function measureCalls({ quick }) {
  const missing = installExtraPeers()
  const rounds = quick ? 3 : 9
  const milliseconds = quick ? 300 : 700
  const { cases, failures } = await measureServers({
    scenarios: ['plain', 'sealed'],
    connections: [32, 1],
    peers: missing === undefined ? peers : peers.filter((name) => !extra.includes(name)),
    rounds,
    milliseconds,
    warmup: quick ? 500 : 1000,
  })
  if (missing !== undefined) for (const name of extra) failures[name] = missing
  if (failures.rally !== undefined) throw new Error(failures.rally)
  return {
    rounds,
    milliseconds,
    versions: {
      official: versionOf('@modelcontextprotocol/server'),
      v1: versionOf('@modelcontextprotocol/sdk'),
      fastmcp: versionOf('fastmcp'),
      mcpUse: versionOf('mcp-use'),
    },
    failures,
    results: cases.map((each) => summarize(each)),
  }
}
