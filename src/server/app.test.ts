import type { Rally, RallyOptions } from 'mcp-rally'
import { rally, send } from 'mcp-rally'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { call, callerNamed, errorOf, request, resultOf, textOf } from '../../test/wire/messages.ts'
import { checkMessage } from '../../test/wire/spec.ts'
import { META_SERVER_INFO } from '../protocol/revisions/2026-07-28.ts'

const quiet = { warn() {}, error() {} }

function newApp(options: Partial<RallyOptions> = {}): Rally {
  return rally({ name: 'app', version: '1', logger: quiet, ...options })
}

async function textFrom(app: Rally, message: object, principal?: string): Promise<string> {
  const reply = await app.dispatch(message, { caller: callerNamed(principal) })
  checkMessage(JSON.parse(reply?.text ?? 'null'), Reflect.get(message, 'method'))
  return reply?.text ?? ''
}

const names = (text: string): string[] =>
  (resultOf(JSON.parse(text) as object) as { tools: { name: string }[] }).tools.map(({ name }) => name)

const build = (): Rally =>
  newApp()
    .tool('zebra', { description: 'Z', input: z.object({ b: z.string(), a: z.number() }) }, () => '')
    .tool('apple', { title: 'An apple', annotations: { readOnlyHint: true }, _meta: { 'x/y': 1 } }, () => '')
    .tool('mango', { icons: [{ src: 'https://example.com/m.png' }], output: z.object({ n: z.number() }) }, () => ({
      n: 1,
    }))

describe('the list of tools', () => {
  test('is in the order of registration, and the same to the byte every time and from every instance', async () => {
    const message = request('tools/list')
    const [one, other] = [build(), build()]
    const text = await textFrom(one, message)
    expect(names(text)).toEqual(['zebra', 'apple', 'mango'])
    expect(await textFrom(one, message)).toBe(text)
    expect(await textFrom(other, message)).toBe(text)
    await send(one, call('zebra', { a: 1, b: '' }))
    expect(await textFrom(one, message)).toBe(text)
  })

  test('says what was said of each tool, and nothing else', async () => {
    const { tools } = resultOf(await send(build(), request('tools/list'))) as { tools: object[] }
    expect(tools[0]).toMatchObject({ name: 'zebra', description: 'Z', inputSchema: { required: ['b', 'a'] } })
    expect(Object.keys(tools[0] ?? {})).toEqual(['name', 'description', 'inputSchema'])
    expect(tools[1]).toMatchObject({ title: 'An apple', annotations: { readOnlyHint: true }, _meta: { 'x/y': 1 } })
    expect(tools[2]).toMatchObject({
      icons: [{ src: 'https://example.com/m.png' }],
      outputSchema: { type: 'object', required: ['n'] },
    })
  })

  test('has what is registered later', async () => {
    const app = build()
    await send(app, request('tools/list'))
    app.tool('late', {}, () => 'Better')
    expect(names(await textFrom(app, request('tools/list')))).toEqual(['zebra', 'apple', 'mango', 'late'])
    expect(textOf(await send(app, call('late')))).toBe('Better')
  })

  test('may be empty', async () => {
    expect(names(await textFrom(newApp(), request('tools/list')))).toEqual([])
  })

  test('comes in pages where it is long, each tool once', async () => {
    const app = newApp({ pageSize: 2 })
    for (const name of ['a', 'b', 'c', 'd', 'e']) app.tool(name, {}, () => name)
    const pages: string[][] = []
    for (let cursor: unknown, more = true; more;) {
      const text = await textFrom(app, request('tools/list', cursor === undefined ? {} : { cursor }))
      pages.push(names(text))
      cursor = resultOf(JSON.parse(text) as object)['nextCursor']
      more = cursor !== undefined
    }
    expect(pages).toEqual([['a', 'b'], ['c', 'd'], ['e']])
    for (const cursor of ['x', '', 7, {}, []]) {
      expect(errorOf(JSON.parse(await textFrom(app, request('tools/list', { cursor }))) as object).code).toBe(-32602)
    }
  })
})

describe('how long a list may be kept, and by whom', () => {
  test.each(['tools/list', 'server/discover'])('is said of %s', async (method) => {
    const hints = async (app: Rally, principal?: string): Promise<unknown[]> => {
      const { ttlMs, cacheScope } = resultOf(JSON.parse(await textFrom(app, request(method), principal)) as object)
      return [ttlMs, cacheScope]
    }
    expect(await hints(newApp())).toEqual([300_000, 'public'])
    expect(await hints(newApp({ listTtlMs: 0 }))).toEqual([0, 'public'])
    expect(await hints(newApp({ listTtlMs: 5 }), 'ada')).toEqual([5, 'private'])
  })
})

describe('discovery', () => {
  test('says what the server is, what it speaks, what it can do and how to use it', async () => {
    const about = {
      name: 'deployer',
      version: '2.0.0',
      title: 'The deployer',
      description: 'Deploys.',
      websiteUrl: 'https://example.com',
      icons: [{ src: 'https://example.com/i.png' }],
    }
    const app = newApp({ ...about, instructions: 'Ask first.' })
    const result = resultOf(JSON.parse(await textFrom(app, request('server/discover'))) as object)
    expect(result).toMatchObject({
      resultType: 'complete',
      supportedVersions: expect.arrayContaining(['2026-07-28']) as unknown,
      capabilities: { tools: {}, logging: {} },
      instructions: 'Ask first.',
      _meta: { [META_SERVER_INFO]: about },
    })
    const bare = resultOf(JSON.parse(await textFrom(newApp(), request('server/discover'))) as object)
    expect(bare).not.toHaveProperty('instructions')
  })
})

describe('an app is not built with', () => {
  test.each([
    { what: 'no name', options: { name: undefined }, says: '`name` and `version` must be strings that are not empty' },
    { what: 'an empty name', options: { name: '' }, says: '`name` and `version` must be strings that are not empty' },
    {
      what: 'no version',
      options: { version: undefined },
      says: '`name` and `version` must be strings that are not empty',
    },
    {
      what: 'a version that is a number',
      options: { version: 1 },
      says: '`name` and `version` must be strings that are not empty',
    },
    {
      what: 'a key that is too short',
      options: { keys: ['short'] },
      says: 'keys[0] must have at least 32 bytes, got 5',
    },
    {
      what: 'an unset key',
      options: { keys: [undefined] },
      says: 'keys[0] must be a string or a Uint8Array, got undefined. Is its environment variable set?',
    },
    { what: 'keys that are null', options: { keys: null }, says: '`keys` must be an array of secrets' },
    { what: 'no keys in the list', options: { keys: [] }, says: '`keys` is empty' },
    {
      what: 'keys and a codec',
      options: { keys: ['a secret of the app tests, long enough'], codec: { seal: String, open: String } },
      says: 'Pass `keys` or `codec`, not both',
    },
    { what: 'a ttl of 0', options: { ttl: 0 }, says: '`ttl` must be a whole number above 0, got 0' },
    {
      what: 'a maxAge that is no number',
      options: { maxAge: Number.NaN },
      says: '`maxAge` must be a whole number above 0, got NaN',
    },
    {
      what: 'a listTtlMs that is no number',
      options: { listTtlMs: Number.NaN },
      says: '`listTtlMs` must be a whole number of 0 or more, got NaN',
    },
    {
      what: 'a listTtlMs below 0',
      options: { listTtlMs: -1 },
      says: '`listTtlMs` must be a whole number of 0 or more, got -1',
    },
    { what: 'a pageSize of 0', options: { pageSize: 0 }, says: '`pageSize` must be a whole number above 0, got 0' },
  ])('$what', ({ options, says }) => {
    expect(() => newApp(options as never)).toThrow(says)
  })

  test.each([
    [{ showErrors: 'false' }, '`showErrors` must be true or false, got "false".'],
    [{ authenticate: () => ({ principal: 'ann' }) }, '`authenticate` is an option of the host, not of rally().'],
    [{ strict: 'false' }, '`strict` must be true or false, got "false".'],
    [{ timeoutMs: -5 }, '`timeoutMs` must be a number above 0, got -5.'],
    [{ timeoutMs: '5' }, '`timeoutMs` must be a number above 0, got "5".'],
    [{ onError: 'x' }, '`onError` must be a function, got "x".'],
    [{ bus: {} }, '`bus` must be a Bus with the functions publish, subscribe, got an object.'],
    [
      { once: {} },
      '`once` must be `once` of a store, or one with the functions claim, renew, settle, release, got an object.',
    ],
    [{ shed: { lagMs: '5' } }, '`shed` must be a function, or { lagMs } with a number above 0, got an object.'],
    [{ steps: null }, '`steps` must be an object of options, got null.'],
    [{ limits: null }, '`limits` must be an object of options, got null.'],
    [{ tasks: null }, '`tasks` must be an object of options, got null.'],
    [{ legacy: 'false' }, '`legacy` must be false or an object of options, got "false".'],
    [{ legacy: { askMs: '5' } }, '`legacy.askMs` must be a number of milliseconds above 0, got "5".'],
    [
      { legacy: { mailbox: {} } },
      '`legacy.mailbox` must be the mailbox of a store, or one with the functions leave, after, watch, got an object.',
    ],
    [{ http: { authenticate: {} } }, '`authenticate` must be a function, got an object.'],
  ])('%j', (options, says) => {
    const refused = { code: 'OPTION_INVALID', message: expect.stringContaining(says) as unknown }
    expect(() => newApp(options as never)).toThrow(expect.objectContaining(refused))
  })
})

describe('a handler is not registered with', () => {
  test.each([
    [{ scopes: 'a:b' }, '`scopes` must be an array of scopes, such as [\'deploy:write\'], got "a:b".'],
    [{ scopes: { a: 1 } }, "`scopes` must be an array of scopes, such as ['deploy:write'], got an object."],
    [{ scopes: [1] }, "`scopes` must be an array of scopes, such as ['deploy:write'], got an array."],
    [{ timeoutMs: true }, '`timeoutMs` must be a number above 0, got true.'],
  ])('%j', (options, says) => {
    const refused = { code: 'HANDLER_INVALID', message: expect.stringContaining(`Tool "x": ${says}`) as unknown }
    expect(() => newApp().tool('x', options as object, () => 'done')).toThrow(expect.objectContaining(refused))
  })
})

test('a tool is not registered with a hint that clients would take for true', () => {
  const annotations = { readOnlyHint: 'false' } as never
  const message = 'Tool "x": `readOnlyHint` must be true or false, got "false".'
  expect(() => newApp().tool('x', { annotations }, () => '')).toThrow(
    expect.objectContaining({ code: 'TOOL_INVALID', message }),
  )
})

describe('without a logger', () => {
  test('an app complains to the error stream, for the other one may carry the protocol', async () => {
    const { error, log } = console
    const said: unknown[] = []
    console.error = (...words: unknown[]) => void said.push(words[0])
    console.log = () => said.push('to the wrong stream')
    try {
      const app = rally({ name: 'app', version: '1' })
      app.tool('ask', {}, async (_args, io) => String(await io.confirm('sure', 'Sure?')))
      await send(app, call('ask', {}, { requestState: 'garbage' }))
    } finally {
      Object.assign(console, { error, log })
    }
    const line =
      /^\d\d:\d\d:\d\d WARN {2}A requestState was refused\. reason='[^']+' method='tools\/call' target='ask'$/
    expect(said).toEqual([expect.stringMatching(line)])
  })
})
