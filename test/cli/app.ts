// The server of the terminal client's tests: a tool for each kind of field, and some that mean no good.
import { EventEmitter, once } from 'node:events'
import { rally, type Rally } from 'mcp-rally'
import { serve, type Serving } from 'mcp-rally/node'
import { onTestFinished } from 'vitest'
import { demoApp } from '../../examples/tools.ts'

/** A colour, a title of the window, a cleared screen, an eight-bit control, a reversal of direction, a hidden character. */
export const HOSTILE = '\u001B[31mred\u001B[0m \u001B]0;owned\u0007 \u001B[2J \u009B5A \u202Egnp.exe \u200Bhidden\rover'

export const FORM = {
  type: 'object',
  properties: {
    name: { type: 'string', title: 'Your name', minLength: 2 },
    mail: { type: 'string', format: 'email' },
    page: { type: 'string', format: 'uri' },
    day: { type: 'string', format: 'date' },
    moment: { type: 'string', format: 'date-time' },
    weight: { type: 'number', minimum: 0.5 },
    count: { type: 'integer', minimum: 1, maximum: 9 },
    sure: { type: 'boolean', description: 'Are you sure?' },
    size: { type: 'string', enum: ['small', 'large'] },
    colour: {
      type: 'string',
      oneOf: [
        { const: '#f00', title: 'Red' },
        { const: '#0f0', title: 'Green' },
      ],
    },
    days: { type: 'array', items: { type: 'string', enum: ['Mon', 'Tue', 'Wed'] }, minItems: 2 },
    rooms: {
      type: 'array',
      items: {
        anyOf: [
          { const: 'r1', title: 'Blue room' },
          { const: 'r2', title: 'Red room' },
        ],
      },
    },
  },
  required: ['name', 'mail', 'page', 'day', 'moment', 'weight', 'count', 'sure', 'size', 'colour', 'days', 'rooms'],
}

/** Nothing in it has to be answered. */
export const OPTIONAL = {
  type: 'object',
  properties: {
    note: { type: 'string' },
    age: { type: 'integer' },
    again: { type: 'boolean' },
    kind: { type: 'string', enum: ['a', 'b'] },
    tags: { type: 'array', items: { type: 'string', enum: ['x', 'y'] } },
    city: { type: 'string', default: 'Ghent' },
    number: { type: 'integer', default: 7 },
    loud: { type: 'boolean', default: true },
    month: { type: 'string', enum: ['May', 'June'], default: 'June' },
    several: { type: 'array', items: { type: 'string', enum: ['p', 'q', 'r'] }, default: ['q', 'r'] },
  },
}

export interface TestServer {
  readonly url: string
  /** Resolves when the tool `slow` has begun, and when it was told to stop. */
  readonly slow: { readonly begun: Promise<unknown>; readonly stopped: Promise<unknown> }
  /** From now on the page of the tool `errand` has been visited. */
  readonly errand: { readonly run: () => void }
  /** From now on the tool `shaky` gives its result, and does not cut every connection instead. */
  readonly shaky: { readonly heal: () => void }
  /** The headers that came with the last request. */
  readonly headers: () => Readonly<Record<string, unknown>>
}

export async function startServer(): Promise<TestServer> {
  const seen = new EventEmitter()
  const [begun, stopped] = [once(seen, 'begun'), once(seen, 'stopped')]
  let hasRun = false
  let isWell = false
  const app = testApp(seen, () => hasRun)
  app.tool('shaky', {}, async (_args, io) => {
    const sure = await io.confirm('sure', 'Sure?')
    if (!isWell) server.closeAllConnections()
    return sure ? 'It held.' : 'No.'
  })
  let headers: Readonly<Record<string, unknown>> = {}
  const { url, server } = await serveHere(app)
  server.on('request', (request) => {
    headers = request.headers
  })
  const heal = (): void => {
    isWell = true
  }
  const run = (): void => {
    hasRun = true
  }
  return { url, slow: { begun, stopped }, headers: () => headers, errand: { run }, shaky: { heal } }
}

/** The demo, in this process. */
export async function serveDemo(): Promise<{ url: string }> {
  return serveHere(demoApp({ keys: [SECRET] }))
}

async function serveHere(app: Rally): Promise<Serving> {
  const serving = await serve(app, { port: 0, handleSignals: false })
  onTestFinished(() => serving.close())
  return serving
}

const SECRET = 'a secret of the tests, and long enough'

function testApp(seen: EventEmitter, hasRun: () => boolean): Rally {
  const app = rally({ name: 'tested', version: '1.0.0', keys: [SECRET], revisions: ['2026-06-XX'] })
  app.tool('form', {}, async (_args, io) => JSON.stringify(await io.ask('form', 'Fill this in.', FORM)))
  app.tool('optional', {}, async (_args, io) => JSON.stringify(await io.ask('form', 'As you like.', OPTIONAL)))
  app.tool('nothing', {}, async (_args, io) => {
    const { action } = await io.elicit('nothing', 'Just say yes.', { type: 'object', properties: {} })
    return action
  })
  app.tool('visit', { input: { type: 'object', properties: { url: { type: 'string' } } } }, async ({ url }, io) => {
    await io.visit('page', 'Please sign in.', String(url), { done: () => true })
    return 'Signed in.'
  })
  app.tool('errand', {}, async (_args, io) => {
    await io.visit('page', 'Run an errand.', 'https://example.com/errand', { done: hasRun, waitMs: 1 })
    return 'Been there.'
  })
  app.tool('folders', {}, async (_args, io) => (await io.roots('roots')).map(({ uri }) => uri).join(' '))
  app.tool('echo', { input: { type: 'object', properties: ECHOED } }, (args) => JSON.stringify(args))
  app.tool('fails', {}, () => {
    throw new Error('It is broken.')
  })
  app.tool('slow', {}, async (_args, io) => {
    seen.emit('begun')
    if (!io.signal.aborted) await once(io.signal, 'abort')
    seen.emit('stopped')
    return 'never seen'
  })
  app.tool('hostile', { description: HOSTILE }, async (_args, io) => {
    const options = [{ const: HOSTILE, title: HOSTILE }]
    await io.ask('it', HOSTILE, {
      type: 'object',
      properties: { it: { type: 'string', title: HOSTILE, oneOf: options } },
      required: ['it'],
    })
    return HOSTILE + 'x'.repeat(50_000)
  })
  app.prompt(
    'greet',
    { arguments: { type: 'object', properties: { who: { type: 'string' } }, required: ['who'] } },
    async ({ who }, io) => {
      const { how } = await io.ask('how', 'How?', {
        type: 'object',
        properties: { how: { type: 'string' } },
        required: ['how'],
      })
      return `${String(how)}, ${String(who)}!`
    },
  )
  app.resource('note://one', { name: 'one', mimeType: 'text/plain' }, () => 'The note.')
  app.resource('note://bytes', { name: 'bytes' }, () => new Uint8Array([0, 255, 27]))
  return app
}

const ECHOED = {
  text: { type: 'string' },
  whole: { type: 'integer' },
  number: { type: 'number' },
  flag: { type: 'boolean' },
  list: { type: 'array', items: { type: 'integer' } },
  object: { type: 'object' },
}
