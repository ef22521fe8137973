// Tools of every mode, for clients whose tasks are of an older revision. Plain JavaScript, so that a process of its own can
// serve them too.
import { MemoryStore, ProtocolError, rally } from 'mcp-rally'
import { z } from 'zod'

const quiet = { warn() {}, error() {} }
const yes = z.object({ confirm: z.boolean() })

export function olderTasksApp(options = {}) {
  const app = rally({
    name: 'older-tasks',
    version: '1.0.0',
    keys: ['a secret of the tests with older tasks'],
    logger: quiet,
    store: new MemoryStore(),
    tasks: { pollMs: 100 },
    revisions: ['2026-06-XX', '2026-02-03-draft'],
    showErrors: true,
    ...options,
  })
  addModes(app)
  addQuestions(app)
  addEndings(app)
  return app
}

function addModes(app) {
  app.tool('provision', { input: z.object({ name: z.string() }) }, async ({ name }, io) => {
    const { confirm } = await io.ask('cost', `Provision ${name}? It costs.`, yes)
    if (!confirm) return 'Left as it was.'
    const inBackground = await io.detach()
    const made = await io.step('make', () => `vm ${name}`)
    const { region } = await io.ask('region', 'Where?', z.object({ region: z.string() }))
    return `${made} in ${region}, ${inBackground ? 'in the background' : 'while you waited'}`
  })
  app.tool('insists', {}, async (_args, io) => {
    await io.detach({ required: true })
    return 'Went on.'
  })
  app.tool('always', { task: 'always' }, () => 'Always.')
  app.tool('copy', { task: 'optional' }, async (_args, io) => {
    for (const file of [1, 2, 3]) {
      io.progress(file, 3, `File ${file}`)
      await new Promise((resolve) => void setTimeout(resolve, 150))
    }
    return 'Copied.'
  })
  app.tool('never', { task: 'never' }, async (_args, io) => ((await io.detach()) ? 'A task.' : 'Never.'))
}

function addQuestions(app) {
  const options = { task: 'optional', asks: { echo_input: z.object({ input: z.string() }) } }
  app.tool('echo', options, async (_args, io) => {
    const { input } = await io.ask('echo_input', 'Please provide the input string to echo back')
    return `Echo: ${input}`
  })
  app.tool('trip', { task: 'optional' }, async (_args, io) => {
    const messages = [{ role: 'user', content: { type: 'text', text: 'Sum it up.' } }]
    const [to, said, roots] = await Promise.all([
      io.choose('to', 'Where to?', ['sea', 'hills']),
      io.sample('said', { messages, maxTokens: 50 }),
      io.roots('roots'),
    ])
    return `${to}, ${said.content.text}, ${roots.length}`
  })
  app.tool('page', { task: 'optional' }, async (_args, io) => {
    await io.visit('page', 'Please sign in.', 'https://pages.example/', { done: () => true, waitMs: 0 })
    return 'Signed in.'
  })
  app.tool('beside', { task: 'optional' }, async (_args, io) => {
    const asked = io.confirm('sure', 'Sure?')
    const told = await io.step('work', async ({ progress }) => {
      progress(1, 2, 'Half of it is done.')
      return 'Done'
    })
    return `${told}: ${await asked}`
  })
}

function addEndings(app) {
  app.tool('adds', { task: 'optional', output: z.object({ sum: z.number() }) }, () => ({ sum: 3 }))
  app.tool('lists', { task: 'optional', output: z.array(z.number()) }, () => [1, 2])
  app.tool('wrong', { task: 'optional' }, () => {
    throw new Error('The disk is full.')
  })
  app.tool('refuses', { task: 'optional' }, () => {
    throw new ProtocolError(-32050, 'Not on a Sunday.', { day: 'Sunday' })
  })
  app.tool('forever', { task: 'optional' }, async (_args, io) => {
    await io.step('wait', ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())))
    return 'Not for ever after all.'
  })
}
