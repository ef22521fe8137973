// The app of the client's tests: a tool, prompt or resource for everything that a call can do. Plain JavaScript, so that a
// process can serve it too.
import { rally } from 'mcp-rally'
import { z } from 'zod'

const text = (content) =>
  (Array.isArray(content) ? content : [content]).map((block) => block.text ?? block.type).join(' ')

/** `hold` lets a test decide when the tool `work` goes on from its step. */
export function testApp(options = {}, hold = async () => {}) {
  const app = rally({
    name: 'tested',
    version: '2.0.0',
    title: 'Tested',
    instructions: 'Ask for anything.',
    keys: ['a secret of the client tests, long enough'],
    showErrors: true,
    ...options,
  })

  app.tool(
    'add',
    { input: z.object({ a: z.number(), b: z.number() }), output: z.object({ sum: z.number() }) },
    ({ a, b }) => ({
      sum: a + b,
    }),
  )

  app.tool(
    'order',
    {
      input: z.object({ what: z.string() }),
      asks: {
        size: z.object({ size: z.enum(['small', 'large']), milk: z.boolean().default(true) }),
        sure: z.object({ sure: z.boolean() }),
      },
    },
    async ({ what }, io) => {
      const { size, milk } = await io.ask('size', `Which ${what}?`)
      const { sure } = await io.ask('sure', `A ${size} ${what}, sure?`)
      return sure ? `A ${size} ${what} ${milk ? 'with' : 'without'} milk.` : 'Nothing then.'
    },
  )

  app.tool('together', {}, async (_args, io) => {
    const [name, city, model] = await Promise.all([
      io.ask('name', 'Your name?', z.object({ name: z.string().min(2) })),
      io.ask('city', 'Your city?', z.object({ city: z.string() })),
      io.sample('greeting', { messages: [{ role: 'user', content: { type: 'text', text: 'Hello?' } }], maxTokens: 10 }),
    ])
    return `${text(model.content)} ${name.name} of ${city.city}`
  })

  app.tool('page', {}, async (_args, io) => {
    await io.visit('page', 'Please sign in.', 'https://sign-in.example:8443/start?a=1', { done: () => true })
    return 'Signed in.'
  })

  app.tool('folders', {}, async (_args, io) => (await io.roots('roots')).map(({ uri }) => uri).join(' '))

  app.tool('outcome', {}, async (_args, io) => {
    const { action } = await io.elicit('name', 'Your name?', z.object({ name: z.string() }))
    return action
  })

  app.tool('refused', {}, async (_args, io) => {
    await io.ask('name', 'Your name?', z.object({ name: z.string() }))
    return 'Not reached.'
  })

  app.tool('many', { input: z.object({ times: z.number() }) }, async ({ times }, io) => {
    for (let i = 0; i < times; i += 1) await io.confirm(`sure[${i}]`, `Sure, number ${i}?`)
    return `Sure ${times} times.`
  })

  app.tool('busy', {}, async (_args, io) => {
    io.progress(1, 2, 'half')
    io.log('info', { at: 'half' })
    io.progress(2, 2)
    return 'Done.'
  })

  app.tool('work', {}, async (_args, io) => {
    const keys = []
    for (const key of ['one', 'two']) {
      keys.push(
        await io.step(key, async ({ idempotencyKey, signal }) => {
          await hold(key, signal)
          return idempotencyKey
        }),
      )
    }
    return keys.join(' ')
  })

  app.tool('wait', {}, async (_args, io) => {
    const { signal } = io
    await hold('waiting', signal)
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    await hold('cancelled', signal)
  })

  app.tool('fails', {}, () => {
    throw new Error('It broke.')
  })

  app.prompt(
    'review',
    { arguments: z.object({ file: z.string() }), complete: { file: ['a.ts', 'ab.ts', 'b.ts'] } },
    async ({ file }, io) => {
      const focus = await io.choose('focus', 'What to look at?', ['safety', 'speed'])
      return `Review ${file} for ${focus}.`
    },
  )

  app.resource('config://app', { name: 'config' }, () => 'colour: green')

  app.resourceTemplate('payroll://{year}', { name: 'payroll' }, async ({ year }, io) =>
    (await io.confirm('sure', `Read ${year}?`)) ? `The payroll of ${year}` : undefined,
  )

  return app
}
