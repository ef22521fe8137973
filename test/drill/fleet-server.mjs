// One instance of the fleet drill: four steps and three questions. It tells the drill each effect before the step returns.
import { rally } from 'mcp-rally'
import { serve } from 'mcp-rally/node'

const { keys, version, port, stepMs } = JSON.parse(process.env.OPTIONS)

/** Resolves once the message is out of this process, so that no way of ending it takes it back. */
const say = (message) => new Promise((resolve) => process.send(message, resolve))

const app = rally({ name: 'fleet', version: '1.0.0', keys, logger: { warn() {}, error() {} } })
app.tool(
  'trip',
  {
    version,
    input: { type: 'object', properties: { flow: { type: 'integer' } }, required: ['flow'] },
    asks: { next: { type: 'object', properties: { plus: { type: 'integer' } }, required: ['plus'] } },
  },
  async ({ flow }, io) => {
    const step = (number) =>
      io.step(`step[${number}]`, async ({ idempotencyKey }) => {
        await new Promise((resolve) => setTimeout(resolve, stepMs))
        await say({ effect: idempotencyKey, flow, step: number, version })
        return number
      })
    let sum = await step(1)
    for (const number of [2, 3, 4]) {
      const { plus } = await io.ask(`next[${number}]`, `Flow ${Number(flow)} is at ${sum}. Go on?`)
      sum += plus + (await step(number))
    }
    return `Flow ${Number(flow)} ends at ${sum}.`
  },
)

const serving = await serve(app, { port, drainDelayMs: 500, drainMs: 3_000 })
await say({ port: serving.port })
// Nobody is left to end it.
process.on('disconnect', () => process.exit())
