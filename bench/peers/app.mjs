// The two tools of the scenarios, as Rally has them.
import { z } from 'zod'
import { importBuilt } from '../dist.mjs'

const { rally } = await importBuilt('index.js')

export const app = rally({ name: 'bench', version: '1.0.0', keys: ['a bench key of at least thirty-two bytes'] })

app.tool('add', { input: z.object({ a: z.number(), b: z.number() }) }, async ({ a, b }) => String(a + b))

app.tool(
  'deploy',
  { input: z.object({ env: z.string() }), asks: { confirm: z.object({ confirm: z.boolean() }) } },
  async ({ env }, io) => {
    const { confirm } = await io.ask('confirm', `Deploy to ${env}?`)
    return confirm ? `Deployed to ${env}` : 'Left as it was.'
  },
)
