// The tools of this server. A handler runs from its top in every round, so that code with an effect belongs in a step.
import { rally } from 'mcp-rally'

/** Secrets that seal the calls which wait for an answer, separated by commas. README.md says when you need them. */
const { RALLY_KEYS } = process.env

export const app = rally({
  name: 'my-server',
  version: '0.1.0',
  ...(RALLY_KEYS && { keys: RALLY_KEYS.split(',') }),
})

app.tool(
  'order_coffee',
  {
    description: 'Orders a coffee for the user, who chooses its size',
    input: { type: 'object', properties: { drink: { type: 'string' } }, required: ['drink'] },
    asks: { size: { type: 'object', properties: { size: { enum: ['small', 'large'] } }, required: ['size'] } },
  },
  async (args, io) => {
    // TypeScript learns nothing from plain JSON Schema. The values have been checked against it.
    const drink = String(args['drink'])
    const answer = await io.ask('size', `Which size of ${drink}?`)
    const size = String(answer['size'])
    const order = await io.step('order', ({ idempotencyKey }) => placeOrder(`${size} ${drink}`, idempotencyKey))
    return `Order ${order}: one ${size} ${drink}`
  },
)

/** Stands for a call to another system. If the step runs again, it gets the same key, so that the order is placed once. */
async function placeOrder(_what: string, idempotencyKey: string): Promise<string> {
  return idempotencyKey.slice(0, 8)
}
