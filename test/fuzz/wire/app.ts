// The app under test: something of everything that a server can have, with handlers that never fail by themselves.
import type { Rally, RallyOptions } from 'mcp-rally'
import { elicit, inputRequired, MemoryStore, outcome, ProtocolError, rally, resolver, roots, sample } from 'mcp-rally'
import { z } from 'zod'
import type { Watch } from '../harness/target.ts'

export const SECRET = 'the key of the fuzzed app, which nobody must ever see'

/** What is behind a scope that no caller has. Only hosts that authenticate hold it back. */
export const SCOPED = 'Only for some, and for nobody here'

/** `scoped` is what is behind a scope. */
export function fuzzApp(watch: Watch, options: Partial<RallyOptions> = {}, scoped = 'Only for some.'): Rally {
  watch.keepSecret(SECRET)
  watch.keepSecret(SCOPED)
  const app = rally({
    name: 'fuzzed',
    version: '1.0.0',
    instructions: 'Be patient.',
    ...(options.codec === undefined && { keys: [SECRET] }),
    logger: watch.logger,
    pageSize: 5,
    store: new MemoryStore(),
    // Short, so that nothing of one input is kept for long.
    tasks: { ttlMs: 2_000, pollMs: 100 },
    legacy: { askMs: 2_000, callMs: 4_000, keepMs: 1_000 },
    revisions: ['2026-06-XX', '2026-02-03-draft'],
    ...options,
  })
  addTools(app)
  addFlows(app)
  addOdds(app)
  addScoped(app, scoped)
  addOthers(app)
  return app
}

const yes = z.object({ ok: z.boolean() })
const prompt = { messages: [{ role: 'user' as const, content: { type: 'text' as const, text: 'Hi' } }], maxTokens: 9 }

function addTools(app: Rally): void {
  app.tool('echo', { input: z.object({ text: z.string() }) }, ({ text }) => text)
  // Lets everything through to the handler, as it came.
  app.tool('mirror', { input: { type: 'object' }, output: { type: 'object' } }, (args) => args)
  const region = { type: 'string', 'x-mcp-header': 'Region' }
  app.tool('header', { input: { type: 'object', properties: { region } } }, (args) => JSON.stringify(args))
  app.tool('count', { input: z.object({ to: z.int().max(5) }) }, async ({ to }, io) => {
    for (let i = 1; i <= to; i += 1) {
      io.progress(i, to, `${i} of ${to}`)
      io.log('warning', { i, id: io.uuid(`id[${i}]`) })
      await io.scope(`group[${i}]`, (inner) => inner.step('one', () => i))
    }
    return `Counted to ${to}`
  })
}

function addFlows(app: Rally): void {
  app.tool('deploy', { input: z.looseObject({ env: z.string() }), asks: { ok: yes } }, async ({ env }, io) => {
    await io.step('plan', () => ({ env }))
    const { ok } = await io.ask('ok', `Deploy to ${env}?`)
    return ok && (await io.confirm('sure', 'Sure?')) ? 'Deployed' : 'Left as it was'
  })
  app.tool('trip', {}, async (_args, io) => {
    const [to, said, listed] = await Promise.all([
      io.choose('to', 'Where to?', ['sea', { value: 'hills', title: 'The hills' }]),
      io.sample('said', prompt),
      io.roots('roots'),
      io.visit('page', 'Go there.', (token) => `https://pages.example/?t=${token}`, { done: () => true, waitMs: 1 }),
    ])
    return `${to}, ${said.model}, ${listed.length}`
  })
  app.tool('wizard', {}, (_args, io) => {
    const { names } = io.responses.state(z.object({ names: z.array(z.string()) })) ?? { names: [] }
    const answer = io.responses.accepted('name', z.object({ name: z.string() }))
    if (answer !== undefined) names.push(answer.name)
    if (names.length >= 2) return names.join(', ')
    return inputRequired({ inputRequests: { name: elicit('Name?', z.object({ name: z.string() })) }, state: { names } })
  })
  const account = resolver('account', { asks: { ok: yes }, run: async (_args, io) => io.ask('ok', 'Yours?') })
  const plan = resolver('plan', { needs: { account }, run: (_args, _io, needs) => `plan of ${needs.account.ok}` })
  app.tool('needs', { needs: { plan, account: outcome(account) } }, (_args, _io, needs) => JSON.stringify(needs))
  app.tool('job', { task: 'optional' }, async (_args, io) => {
    await io.step('work', () => 1)
    return (await io.confirm('sure', 'Go on?')) ? 'Done' : 'Not done'
  })
  app.tool('later', {}, async (_args, io) => {
    const ok = await io.confirm('first', 'First?')
    await io.detach()
    return ok ? 'Later' : 'Never'
  })
}

/** What the others do not use. */
function addOdds(app: Rally): void {
  app.tool('odds', {}, async (_args, io) => {
    const failed = await io.step('fails', () => Promise.reject(new ProtocolError(1, 'planned'))).catch(() => 'failed')
    const answer = await io.elicit('reason', 'Why?', z.object({ reason: z.string().optional() }))
    await io.step('tells', ({ progress, log }) => {
      progress(1)
      log('info', 'told')
    })
    await io.yield()
    return [failed, answer.action, io.random('n') < 1, io.now() > 0, io.can('roots')].join()
  })
  app.tool('model', {}, (_args, io) => {
    const [said, listed] = [io.responses.sampled('model'), io.responses.roots('roots')]
    if (said !== undefined && listed !== undefined) return `${said.model} ${listed.length}`
    return inputRequired({ inputRequests: { model: sample(prompt), roots: roots() } })
  })
  app.tool('touch', {}, () => {
    app.notify.toolsChanged()
    app.notify.resourceUpdated('note://plain')
    return 'Touched'
  })
}

function addScoped(app: Rally, text: string): void {
  const scopes = ['admin']
  app.tool('admin', { scopes }, () => text)
  app.prompt('private', { scopes, arguments: z.object({ a: z.string() }), complete: { a: [text] } }, () => text)
  app.resource('note://private', { name: 'private', scopes }, () => text)
  app.resourceTemplate('private://{id}', { name: 'privates', scopes, complete: { id: [text] } }, () => text)
}

function addOthers(app: Rally): void {
  const complete = { topic: (value: string) => ['moon', 'mars'].filter((each) => each.startsWith(value)) }
  const topic = z.object({ topic: z.string() })
  app.prompt('brief', { arguments: topic, complete, asks: { ok: yes } }, async (args, io) => {
    return `${args.topic}: ${(await io.ask('ok', 'Really?')).ok}`
  })
  app.resource('note://plain', { name: 'plain', mimeType: 'text/plain' }, () => 'A note.')
  app.resource('note://asked', { name: 'asked' }, async (io) => `${await io.confirm('sure', 'Sure?')}`)
  app.resourceTemplate('note://by/{id}{?q*}', { name: 'by-id', complete: { id: ['one', 'two'] } }, ({ id, q }) =>
    id === 'none' ? undefined : JSON.stringify({ id, q }),
  )
  app.resourceTemplate('file:///{+path}', { name: 'file' }, ({ path }) => path)
}
