// Effects belong in steps. A step that was recorded is not done again, whichever instance continues the call.
import { rally } from 'mcp-rally'
import { z } from 'zod'

export const app = rally({ name: 'deployer', version: '1.0.0' })

/** Stands for another system. It knows the keys it has seen, so that a repeated request has one effect. */
export const cloud = new Map<string, string>()

app.tool('deploy', { input: z.object({ service: z.string() }) }, async ({ service }, io) => {
  const build = await io.step('build', () => `${service}@${service.length}.0`)
  if (!(await io.confirm('sure', `Deploy ${build}?`))) return 'Not deployed.'
  // A second attempt after a failure or a lost instance sends the same key.
  await io.step('ship', ({ idempotencyKey }) => void cloud.set(idempotencyKey, build), { retries: 3 })
  return `Deployed ${build}`
})
