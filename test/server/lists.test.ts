import type { Rally } from 'mcp-rally'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { errorOf, request, resultOf } from '../wire/messages.ts'
import { ask, makeApp, responseOf } from './messages.ts'
import type { Wire } from './wires.ts'
import { hosts } from './wires.ts'

interface Listing {
  readonly method: string
  readonly property: string
  readonly register: (app: Rally, name: string) => unknown
}

const hi = (): string => 'Hi'

const listings: readonly Listing[] = [
  {
    method: 'tools/list',
    property: 'tools',
    register: (app, name) => app.tool(name, {}, hi),
  },
  {
    method: 'prompts/list',
    property: 'prompts',
    register: (app, name) => app.prompt(name, {}, hi),
  },
  {
    method: 'resources/list',
    property: 'resources',
    register: (app, name) => app.resource(`a://${name}`, { name }, hi),
  },
  {
    method: 'resources/templates/list',
    property: 'resourceTemplates',
    register: (app, name) => app.resourceTemplate(`a://${name}/{id}`, { name }, hi),
  },
]

const NAMES = ['zebra', 'ant', 'Bee', '10', '9']

function appWith({ register }: Listing, names: readonly string[]): Rally {
  const { app } = makeApp({ pageSize: 2 })
  for (const name of names) register(app, name)
  return app
}

const cases = hosts.flatMap((host) => listings.map((listing) => ({ host, listing })))

describe.each(cases)('$listing.method over $host.name', ({ host, listing }) => {
  const { method, property, register } = listing
  const app = appWith(listing, NAMES)
  let wire: Wire

  beforeAll(async () => {
    wire = await host.open(app)
  })
  afterAll(() => wire.close())

  const page = async (cursor?: unknown): Promise<{ names: string[]; nextCursor: unknown }> => {
    const result = resultOf(await ask(wire, request(method, cursor === undefined ? {} : { cursor })))
    const entries = result[property] as { name: string }[]
    return { names: entries.map(({ name }) => name), nextCursor: result['nextCursor'] }
  }

  test('walks through all pages, in the order of registration every time', async () => {
    for (let times = 0; times < 2; times += 1) {
      const first = await page()
      const second = await page(first.nextCursor)
      const third = await page(second.nextCursor)
      expect([first.names, second.names, third.names]).toEqual([['zebra', 'ant'], ['Bee', '10'], ['9']])
      expect(third.nextCursor).toBeUndefined()
    }
  })

  test.each([['nonsense'], [''], [7], [false], [{}], [[]]])('refuses the cursor %j', async (cursor) => {
    expect(errorOf(await ask(wire, request(method, { cursor })))).toEqual({
      code: -32602,
      message: 'Invalid cursor: this server did not issue it. Start the list again.',
    })
  })

  test('shows at its end what is registered between two pages, and nothing twice', async () => {
    const first = await page()
    register(app, 'late')
    const second = await page(first.nextCursor)
    const third = await page(second.nextCursor)
    expect([...first.names, ...second.names, ...third.names]).toEqual([...NAMES, 'late'])
  })
})

describe('what a server says of itself', () => {
  const extensions = { 'com.mcp-rally/idempotency-key': { records: false } }
  const always = { tools: { listChanged: true }, logging: {}, extensions }
  const resources = { listChanged: true, subscribe: true }
  const completing = { arguments: z.object({ a: z.string() }), complete: { a: ['b'] } }

  test.each([
    ['nothing', (app: Rally) => app, {}],
    ['a prompt', (app: Rally) => app.prompt('p', {}, hi), { prompts: { listChanged: true } }],
    ['a resource', (app: Rally) => app.resource('a://b', { name: 'b' }, hi), { resources }],
    ['a template', (app: Rally) => app.resourceTemplate('a://{b}', { name: 'b' }, hi), { resources }],
    [
      'a prompt that completes',
      (app: Rally) => app.prompt('p', completing, hi),
      { prompts: { listChanged: true }, completions: {} },
    ],
    [
      'a template that completes',
      (app: Rally) => app.resourceTemplate('a://{b}', { name: 'b', complete: { b: [] } }, hi),
      { resources, completions: {} },
    ],
  ])('goes by what is registered: %s', async (_what, register, more) => {
    const { app } = makeApp()
    const { capabilities } = resultOf(await responseOf(register(app), request('server/discover')))
    expect(capabilities).toEqual({ ...always, ...more })
  })

  test('has the instructions that it was given', async () => {
    const { app } = makeApp({ instructions: 'Ask first.' })
    expect(resultOf(await responseOf(app, request('server/discover')))).toMatchObject({ instructions: 'Ask first.' })
  })
})

describe.each(hosts)('a server without prompts and resources over $name', ({ isHttp, open }) => {
  let wire: Wire

  beforeAll(async () => {
    wire = await open(makeApp().app.tool('t', {}, hi))
  })
  afterAll(() => wire.close())

  test.each([
    ['prompts/list', {}],
    ['prompts/get', { name: 'p' }],
    ['resources/list', {}],
    ['resources/templates/list', {}],
    ['resources/read', { uri: 'a://b' }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' } }],
  ])('does not know %s', async (method, params) => {
    const { response, status } = await wire.open(request(method, params)).answer()
    expect(errorOf(response)).toEqual({ code: -32601, message: `Method not found: ${method}` })
    expect(status).toBe(isHttp ? 404 : undefined)
  })
})

test('a server with templates alone lists no resources, and one with resources alone no templates', async () => {
  const { app: templates } = makeApp()
  templates.resourceTemplate('a://{b}', { name: 'b' }, hi)
  expect(resultOf(await responseOf(templates, request('resources/list')))['resources']).toEqual([])
  const { app: fixed } = makeApp()
  fixed.resource('a://b', { name: 'b' }, hi)
  expect(resultOf(await responseOf(fixed, request('resources/templates/list')))['resourceTemplates']).toEqual([])
})

test.each([0, -1, 1.5, NaN, Infinity])('a page of %d entries is an error when the app is built', (pageSize) => {
  expect(() => makeApp({ pageSize })).toThrow(`\`pageSize\` must be a whole number above 0, got ${pageSize}.`)
})
