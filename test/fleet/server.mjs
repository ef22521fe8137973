// One instance of the fleet. It tells the test each effect of its steps, which take a few milliseconds each.
import { rally } from 'mcp-rally'
import { serve } from 'mcp-rally/node'

const { keys, stepMs, sharesStore = false } = JSON.parse(process.env.OPTIONS)

/** Resolves once the message is out of this process, so that no way of ending it takes it back. */
const say = (message) => new Promise((resolve) => process.send(message, resolve))

/** The store of the fleet, which the test keeps. */
class SharedStore {
  #asked = 0
  #waiting = new Map()

  constructor() {
    process.on('message', ({ answer, value }) => {
      this.#waiting.get(answer)?.(value)
      this.#waiting.delete(answer)
    })
  }

  claim = (...args) => this.#ask('claim', args)
  renew = (...args) => this.#ask('renew', args)
  settle = (...args) => this.#ask('settle', args)
  release = (...args) => this.#ask('release', args)

  #ask(method, args) {
    const ask = (this.#asked += 1)
    process.send({ ask, method, args })
    return new Promise((resolve) => void this.#waiting.set(ask, resolve))
  }
}

const stepOptions = sharesStore ? { once: new SharedStore() } : {}
const app = rally({ name: 'fleet', version: '1.0.0', keys })

app.tool(
  'long_sum',
  {
    description: 'Adds the numbers from 1 to 2n, with a question in the middle',
    input: {
      type: 'object',
      properties: { flow: { type: 'integer' }, n: { type: 'integer' } },
      required: ['flow', 'n'],
    },
    asks: { go_on: { type: 'object', properties: { plus: { type: 'integer' } }, required: ['plus'] } },
  },
  async ({ flow, n }, io) => {
    const add = (sum, step) =>
      io.step(
        `add[${step}]`,
        async ({ idempotencyKey }) => {
          await new Promise((resolve) => setTimeout(resolve, stepMs))
          await say({ effect: idempotencyKey, flow, step })
          return sum + step
        },
        stepOptions,
      )
    let sum = 0
    for (let step = 1; step <= n; step += 1) sum = await add(sum, step)
    const { plus } = await io.ask('go_on', `The sum is ${sum}. Go on?`)
    for (let step = n + 1; step <= 2 * n; step += 1) sum = await add(sum, step)
    return `The sum is ${sum + plus}.`
  },
)

const { port } = await serve(app, { port: 0 })
await say({ port })
// Nobody is left to end it.
process.on('disconnect', () => process.exit())
