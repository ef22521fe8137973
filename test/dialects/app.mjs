// Handlers for every revision, in which nothing looks at it except the tool that tells it. Plain JavaScript, so that a process
// of its own can serve them too.
import { elicit, inputRequired, rally, visit } from 'mcp-rally'
import { z } from 'zod'

export const KEYS = ['a secret of the tests of drafts, shared by all']

const login = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
const LOGIN = 'Please provide your GitHub username'
const QUESTION = {
  messages: [{ role: 'user', content: { type: 'text', text: 'What is the capital of France?' } }],
  modelPreferences: { hints: [{ name: 'claude-3-sonnet' }], intelligencePriority: 0.8, speedPriority: 0.5 },
  systemPrompt: 'You are a helpful assistant.',
  maxTokens: 100,
}

export function draftApp(options = {}) {
  const app = rally({
    name: 'drafts',
    version: '1.0.0',
    keys: KEYS,
    revisions: ['2026-06-XX', '2026-02-03-draft'],
    logger: { warn() {}, error() {} },
    ...options,
  })
  addExamples(app)
  addByHand(app)
  addOthers(app)
  return app
}

function addExamples(app) {
  app.tool('get_weather', { input: z.object({ location: z.string() }) }, async ({ location }, io) => {
    await io.ask('github_login', LOGIN, login)
    return `Current weather in ${location}:\nTemperature: 72\u00b0F\nConditions: Partly cloudy`
  })
  app.tool('both', {}, async (_args, io) => {
    const [{ name }, said] = await Promise.all([
      io.ask('github_login', LOGIN, login),
      io.sample('capital_of_france', QUESTION),
    ])
    return `${name}: ${said.content.text}`
  })
  app.tool('ConfirmAction', { input: z.object({ action: z.string() }) }, async ({ action }, io) =>
    (await io.confirm('confirm', `Do you want to proceed with: ${action}?`))
      ? 'Action confirmed!'
      : 'Action cancelled.',
  )
}

function addByHand(app) {
  const named = z.object({ name: z.string() })
  const aged = z.object({ age: z.number() })
  app.tool('WizardTool', {}, (_args, io) => {
    const state = io.responses.state()
    const age = io.responses.accepted('age', aged)
    if (state?.name !== undefined && age !== undefined) return `Welcome, ${state.name}! You are ${age.age} years old.`
    const name = io.responses.accepted('name', named)?.name ?? state?.name
    if (name === undefined) {
      return inputRequired({ inputRequests: { name: elicit("What's your name?", named) }, state: {} })
    }
    const question = elicit(`Hi ${name}! How old are you?`, aged)
    return inputRequired({ inputRequests: { age: question }, state: { name } })
  })
  app.tool('DeferredTool', {}, (_args, io) =>
    io.responses.state() === undefined
      ? inputRequired({ state: { step: 1 } })
      : `Completed step ${io.responses.state().step}`,
  )
  app.tool('page', {}, (_args, io) =>
    io.responses.action('page') === undefined
      ? inputRequired({ inputRequests: { page: visit('Look here.', 'https://pages.example/look') } })
      : `Was told ${io.responses.action('page')}.`,
  )
}

function addOthers(app) {
  const context = z.object({ context: z.string() })
  app.tool('greet', {}, () => 'Hello')
  app.tool('list', { output: z.array(z.int()) }, () => [1, 2, 3])
  app.tool('revision', {}, (_args, io) => {
    const known = ['elicitation.form', 'elicitation.url', 'sampling', 'sampling.tools', 'sampling.context', 'roots']
    return [io.revision, ...known.filter((capability) => io.can(capability))].join(' ')
  })
  app.tool('report', {}, async (_args, io) => {
    io.progress(1, 2, 'half')
    io.log('warning', 'late')
    await io.confirm('sure', 'Report?')
    return 'Reported.'
  })
  app.tool('fail', {}, () => {
    throw new Error('The disk is full.')
  })
  app.prompt('brief', { arguments: z.object({ topic: z.string() }), complete: { topic: ['moon', 'mars'] } }, ask)
  app.resource('note://plain', { name: 'plain' }, () => 'A note.')
  app.resourceTemplate('note://by/{id}', { name: 'by-id' }, async ({ id }, io) =>
    id === 'none' ? undefined : `${id} for ${(await io.ask('context', 'Who reads it?', context)).context}`,
  )
  async function ask({ topic }, io) {
    return `${topic}: ${(await io.ask('context', 'What for?', context)).context}`
  }
}
