// One handler file for every client: nothing in it looks at the revision, except the tool that tells it. Plain JavaScript,
// so that a process of its own can serve it too.
import { elicit, inputRequired, rally, visit } from 'mcp-rally'
import { z } from 'zod'

export const KEYS = ['a secret of the tests with older clients']

export function olderApp(options = {}) {
  const app = rally({
    name: 'older',
    version: '1.0.0',
    title: 'For older clients',
    instructions: 'Be patient.',
    keys: KEYS,
    logger: { warn() {}, error() {} },
    showErrors: true,
    ...options,
  })
  addQuestions(app)
  addRounds(app)
  addPlain(app)
  addOthers(app)
  return app
}

const prompt = { messages: [{ role: 'user', content: { type: 'text', text: 'Sum it up.' } }], maxTokens: 50 }

function addQuestions(app) {
  let shipped = 0
  app.tool(
    'deploy',
    { input: z.object({ env: z.string() }), asks: { confirm: z.object({ confirm: z.boolean() }) } },
    async ({ env }, io) => {
      const plan = await io.step('plan', () => `plan ${(shipped += 1)}`)
      const { confirm } = await io.ask('confirm', `Deploy to ${env}?`)
      const again = await io.step('count', () => shipped)
      return confirm ? `Deployed ${plan} of ${again} to ${env}` : 'Left as it was.'
    },
  )
  app.tool('outcome', {}, async (_args, io) => {
    const { action } = await io.elicit('q', 'Go on?', z.object({ reason: z.string().optional() }))
    return `The user said ${action}.`
  })
  app.tool('summarize', {}, async (_args, io) => (await io.sample('summary', prompt)).content.text)
  app.tool('workspace', {}, async (_args, io) => {
    const roots = await io.roots('roots')
    return roots.map(({ uri }) => uri).join(' ')
  })
  const looks = new Map()
  app.tool('sign_in', { input: z.object({ looks: z.int().default(1) }) }, async (args, io) => {
    const done = ({ token }) => {
      looks.set(token, (looks.get(token) ?? 0) + 1)
      return looks.get(token) >= args.looks
    }
    await io.visit('page', 'Please sign in.', (token) => `https://pages.example/?t=${token}`, { done, waitMs: 0 })
    return 'Signed in.'
  })
  app.tool('topics', {}, async (_args, io) => {
    const { several } = await io.ask('topics', 'Which?', z.object({ several: z.array(z.enum(['a', 'b', 'c'])) }))
    return several.join('+')
  })
}

function addRounds(app) {
  app.tool('survey', {}, async (_args, io) => {
    const real = z.string().refine((name) => name !== 'nobody', 'must be the name of somebody')
    const { name } = await io.ask('name', 'Your name?', z.object({ name: real }))
    const { age } = await io.ask('age', `How old are you, ${name}?`, z.object({ age: z.int().min(0) }))
    return `${name} is ${age}.`
  })
  app.tool('trip', {}, async (_args, io) => {
    const [to, said, roots] = await Promise.all([
      io.choose('to', 'Where to?', ['sea', { value: 'hills', title: 'The hills' }]),
      io.sample('said', prompt),
      io.roots('roots'),
    ])
    return `${to}, ${said.content.text}, ${roots.length}`
  })
  app.tool('wizard', { input: z.object({ rounds: z.int().default(2) }) }, ({ rounds }, io) => {
    const done = io.responses.state(z.object({ names: z.array(z.string()) })) ?? { names: [] }
    const answer = io.responses.accepted(`name${done.names.length}`, z.object({ name: z.string() }))
    const names = answer === undefined ? done.names : [...done.names, answer.name]
    if (names.length >= rounds) return names.join(', ')
    const question = elicit(`Name ${names.length + 1}?`, z.object({ name: z.string() }))
    return inputRequired({ inputRequests: { [`name${names.length}`]: question }, state: { names } })
  })
  app.tool('pause', {}, (_args, io) =>
    io.responses.state() === undefined ? inputRequired({ state: { paused: true } }) : 'Went on after a pause.',
  )
  app.tool('look', {}, (_args, io) =>
    io.responses.action('page') === undefined
      ? inputRequired({ inputRequests: { page: visit('Look here.', 'https://pages.example/look') } })
      : `Was told ${io.responses.action('page')}.`,
  )
}

function addPlain(app) {
  app.tool('greet', { title: 'Greets', annotations: { readOnlyHint: true } }, () => 'Hello')
  app.tool('revision', {}, (_args, io) => {
    const known = ['elicitation.form', 'elicitation.url', 'sampling', 'sampling.tools', 'sampling.context', 'roots']
    return [io.revision, ...known.filter((capability) => io.can(capability))].join(' ')
  })
  app.tool('add', { input: z.object({ a: z.int() }), output: z.object({ sum: z.int() }) }, ({ a }) => ({ sum: a + 1 }))
  app.tool('list', { output: z.array(z.int()) }, () => [1, 2, 3])
  app.tool('link', {}, () => ({ type: 'resource_link', uri: 'note://1', name: 'one', description: 'The first' }))
  app.tool('report', {}, (_args, io) => {
    io.progress(1, 2, 'half')
    io.log('debug', 'details')
    io.log('warning', { it: 'is late' }, 'clock')
    return 'Reported.'
  })
  app.tool('fail', {}, () => {
    throw new Error('The disk is full.')
  })
  app.tool('wait', {}, async (_args, io) => {
    io.log('info', 'waiting')
    await new Promise((resolve) => io.signal.addEventListener('abort', resolve, { once: true }))
  })
}

function addOthers(app) {
  const context = z.object({ context: z.string() })
  app.prompt(
    'brief',
    { title: 'Brief', arguments: z.object({ topic: z.string() }), complete: { topic: ['moon', 'mars'] } },
    async ({ topic }, io) => `${topic}: ${(await io.ask('context', 'What for?', context)).context}`,
  )
  app.prompt('needs_model', {}, async (_args, io) => (await io.sample('said', prompt)).content.text)
  app.resource('note://plain', { name: 'plain', title: 'Plain', mimeType: 'text/plain' }, () => 'A note.')
  app.resourceTemplate('note://by/{id}', { name: 'by-id' }, async ({ id }, io) => {
    if (id === 'none') return undefined
    return `${id} for ${(await io.ask('context', 'Who reads it?', context)).context}`
  })
}
