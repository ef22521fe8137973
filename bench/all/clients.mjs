// Flows per second of pairs of client and server, as `npm run bench -- client` measures them.
import { measureClients } from '../client.mjs'
import { versionOf } from './extra.mjs'

export async function measureClientPairs({ quick }) {
  const rounds = quick ? 3 : 9
  const milliseconds = quick ? 400 : 1000
  const results = await measureClients({ rounds, milliseconds, warmup: quick ? 1000 : 2000 })
  return { rounds, milliseconds, versions: { official: versionOf('@modelcontextprotocol/client') }, results }
}
