// A Cloudflare Worker, with the flag nodejs_compat. Every request may reach another isolate, so the keys come from outside.
import { rally } from 'mcp-rally'

const { RALLY_KEYS, ALLOWED_HOSTS = 'localhost,127.0.0.1' } = process.env

export const app = rally({
  name: 'edge',
  version: '1.0.0',
  ...(RALLY_KEYS && { keys: RALLY_KEYS.split(',') }),
  http: { allowedHosts: ALLOWED_HOSTS.split(',') },
})

app.tool('purge', {}, async (_args, io) => ((await io.confirm('sure', 'Purge the cache?')) ? 'Purged.' : 'Not purged.'))

export default { fetch: app.fetch }
