// The app of the contract suite: one tool for each behaviour that every host must have. Plain JavaScript, so that a
// process of its own can serve it too.
import { rally } from 'mcp-rally'
import { z } from 'zod'

export function contractApp() {
  const app = rally({
    name: 'contract',
    version: '1.2.3',
    title: 'The contract',
    keys: ['a secret of the wire tests, long enough'],
    logger: { warn() {}, error() {} },
  })

  app.tool('greet', { input: z.object({ name: z.string() }) }, ({ name }) => `Hello, ${name}!`)

  app.tool(
    'add',
    { input: z.object({ a: z.number(), b: z.number() }), output: z.object({ sum: z.number() }) },
    ({ a, b }) => ({ sum: a + b }),
  )

  app.tool('fail', {}, () => {
    throw new Error('The disk is full.')
  })

  app.tool(
    'book',
    {
      input: z.object({ title: z.string() }),
      asks: { copies: z.object({ copies: z.number().int().min(1) }), gift: z.object({ gift: z.boolean() }) },
    },
    async ({ title }, io) => {
      const price = await io.step('price', () => 12)
      const { copies } = await io.ask('copies', `How many copies of ${title}?`)
      const { gift } = await io.ask('gift', `${copies} for ${copies * price}. As a gift?`)
      return `${copies} x ${title}${gift ? ', wrapped' : ''}`
    },
  )

  app.tool('trip', {}, async (_args, io) => {
    const [city, month, sure] = await Promise.all([
      io.ask('city', 'Where to?', z.object({ city: z.string() })),
      io.choose('month', 'When?', ['May', 'June']),
      io.confirm('sure', 'Are you sure?'),
    ])
    return sure ? `To ${city.city} in ${month}` : 'Staying here'
  })

  app.tool('everything', {}, async (_args, io) => {
    const [form, , sample, roots] = await Promise.all([
      io.ask('form', 'Your name?', z.object({ name: z.string() })),
      io.visit('page', 'Please sign in.', 'https://example.com/sign-in', { done: () => true }),
      io.sample('model', { messages: [{ role: 'user', content: { type: 'text', text: 'Hi' } }], maxTokens: 10 }),
      io.roots('roots'),
    ])
    return `${form.name}, ${sample.model}, ${roots.length} root`
  })

  app.tool('count', { input: z.object({ to: z.number() }) }, async ({ to }, io) => {
    for (let i = 1; i <= to; i += 1) {
      io.progress(i, to, `${i} of ${to}`)
      io.log('debug', { i })
      io.log('warning', `at ${i}`, 'counter')
      await io.step(`step[${i}]`, () => {})
    }
    return `Counted to ${to}`
  })

  addWaiting(app)
  return app
}

/** A call that lasts until it is cancelled, and two that tell when it has begun and when it was cancelled. */
function addWaiting(app) {
  const input = z.object({ id: z.string() })
  const begun = new Events()
  const cancelled = new Events()

  app.tool('wait', { input }, async ({ id }, io) => {
    const { signal } = io
    signal.addEventListener('abort', () => cancelled.happened(id), { once: true })
    io.progress(1)
    begun.happened(id)
    await new Promise(() => {})
  })
  app.tool('begun', { input }, async ({ id }) => {
    await begun.until(id)
    return 'It has begun.'
  })
  app.tool('cancelled', { input }, async ({ id }) => {
    await cancelled.until(id)
    return 'It was cancelled.'
  })
}

class Events {
  #over = new Map()

  happened(id) {
    this.#event(id).happen()
  }

  until(id) {
    return this.#event(id).promise
  }

  #event(id) {
    if (!this.#over.has(id)) {
      let happen
      const promise = new Promise((resolve) => {
        happen = resolve
      })
      this.#over.set(id, { promise, happen })
    }
    return this.#over.get(id)
  }
}
