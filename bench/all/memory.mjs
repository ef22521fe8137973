// What a server holds in memory while users think: bytes for each open question, after garbage collection.
import { startChild } from '../child.mjs'
import { versionOf } from './extra.mjs'

const here = (file) => new URL(`../peers/${file}.mjs`, import.meta.url)
const cases = [
  { peer: 'rally', kind: 'sealed', file: here('rally') },
  { peer: 'official', kind: 'sealed', file: here('official') },
  { peer: 'rally', kind: 'session', file: here('rally-sessions') },
  { peer: 'v1', kind: 'session', file: here('v1-sessions') },
]

export async function measureMemory({ quick }) {
  const counts = quick ? { sealed: 1000, session: 100 } : { sealed: 10_000, session: 1000 }
  const failures = {}
  const results = []
  for (const { peer, kind, file } of cases) {
    try {
      results.push({ peer, kind, open: counts[kind], ...(await measureOne({ peer, kind, file, count: counts[kind] })) })
    } catch (error) {
      failures[`${peer}, ${kind}`] = error.message
    }
  }
  const versions = { official: versionOf('@modelcontextprotocol/server'), v1: versionOf('@modelcontextprotocol/sdk') }
  return { versions, failures, results }
}

/** Some questions are open before the first measurement, so that what is held once for all of them is not counted. */
async function measureOne({ peer, kind, file, count }) {
  const server = startChild(peer, file)
  const users = startChild('the users', new URL('./users.mjs', import.meta.url))
  try {
    const { port } = await server.next()
    await users.ask({ port, kind, count: kind === 'sealed' ? count : count / 10 }, 120_000)
    const before = await server.ask('memory', 60_000)
    const { stateBytes } = await users.ask({ port, kind, count }, 120_000)
    const after = await server.ask('memory', 60_000)
    const each = (field) => Math.round((after[field] - before[field]) / count)
    return { heapBytes: each('heapBytes'), rssBytes: each('rssBytes'), stateBytes }
  } finally {
    server.stop()
    users.stop()
  }
}
