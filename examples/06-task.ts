// Work that takes longer than anybody waits: from io.detach() on, a store keeps the call, and any instance continues it.
import { MemoryStore, rally } from 'mcp-rally'
import { z } from 'zod'

// A file (mcp-rally/sqlite) or PostgreSQL (mcp-rally/postgres) keeps tasks when the process ends.
const store = new MemoryStore()

export const app = rally({ name: 'cloud', version: '1.0.0', store })

app.tool('provision', { input: z.object({ name: z.string() }) }, async ({ name }, io) => {
  if (!(await io.confirm('cost', `${name} costs 4 EUR a day. Go ahead?`))) return 'Not created.'
  await io.detach()
  const vm = await io.step('create', async ({ idempotencyKey }) => `${name}-${idempotencyKey.slice(0, 4)}`)
  await io.sleep('boot', 50)
  const region = await io.choose('region', `Where should ${name} run?`, ['eu-north', 'us-east'])
  await io.step('start', ({ progress }) => progress(1, 1, `${vm} starts in ${region}`))
  return `${name} runs in ${region}`
})
