// Serves the app of these tests from a process of its own: over the standard streams with --stdio, else over HTTP, and then it
// tells its parent where, and every plan that it makes.
import { serve, stdio } from 'mcp-rally/node'
import { draftApp } from './app.mjs'

const app = draftApp(JSON.parse(process.env.OPTIONS ?? '{}'))

app.tool('planned', {}, async (_args, io) => {
  const plan = await io.step('plan', ({ idempotencyKey }) => {
    process.send?.({ planned: idempotencyKey })
    return `plan of ${process.pid}`
  })
  const sure = await io.confirm('sure', `Follow the ${plan}?`)
  return sure ? `${process.pid} follows the ${plan}` : 'Nothing was done.'
})

if (process.argv.includes('--stdio')) {
  await stdio(app)
} else {
  const { url } = await serve(app, { port: 0 })
  process.send({ url })
}
