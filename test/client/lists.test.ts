// Lists: all pages of them, kept for as long as the server says, and no longer than they hold.
import { rally } from 'mcp-rally'
import { connect } from 'mcp-rally/client'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { done, scripted } from './scripted.ts'

afterEach(() => void vi.useRealTimers())

const tool = (name: string): object => ({ name, inputSchema: { type: 'object' } })

describe('a list', () => {
  test('is all of its pages', async () => {
    const app = rally({ name: 'paged', version: '1', pageSize: 3 })
    const names = Array.from({ length: 10 }, (_, i) => `tool${i}`)
    for (const name of names) app.tool(name, {}, () => '')
    const client = await connect(app)
    expect((await client.listTools()).map(({ name }) => name)).toEqual(names)
    await client.close()
  })

  test('is kept for as long as its shortest page is fresh, and then asked for again', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const { client, requests } = await scripted((_request, n) =>
      n % 2 === 0
        ? { prompts: [{ name: `a${n}` }], nextCursor: 'next', ttlMs: 5_000 }
        : { prompts: [{ name: `b${n}` }], ttlMs: 1_000 },
    )
    const listed = async (): Promise<string[]> => (await client.listPrompts()).map(({ name }) => name)
    expect(await listed()).toEqual(['a0', 'b1'])
    expect(requests[1]?.params['cursor']).toBe('next')
    vi.advanceTimersByTime(999)
    expect(await listed()).toEqual(['a0', 'b1'])
    vi.advanceTimersByTime(1)
    expect(await listed()).toEqual(['a2', 'b3'])
    expect(requests).toHaveLength(4)
  })

  test.each([0, -1, undefined, null, 'long', NaN])('that is fresh for %j is asked for each time', async (ttlMs) => {
    const { client, requests } = await scripted(() => ({ resources: [], ttlMs }))
    await client.listResources()
    await client.listResources()
    expect(requests).toHaveLength(2)
  })

  test('is asked for again by who wants it so', async () => {
    const { client, requests } = await scripted(() => ({ resourceTemplates: [], ttlMs: 60_000 }))
    await client.listResourceTemplates()
    await client.listResourceTemplates()
    await client.listResourceTemplates({ refresh: true })
    expect(requests).toHaveLength(2)
  })

  test('is the callers own to change', async () => {
    const { client } = await scripted(() => ({ tools: [tool('a'), tool('b')], ttlMs: 60_000 }))
    const mine = await client.listTools()
    mine.length = 0
    expect(await client.listTools()).toHaveLength(2)
  })

  test('is dropped when the server says that it has changed, and one that was on its way then is not kept', async () => {
    const { client, requests } = await scripted(({ method }, n) => ({ notify }) => {
      if (method !== 'tools/list') {
        notify('notifications/tools/list_changed', {})
        return done('ok')
      }
      if (n === 2) notify('notifications/tools/list_changed', {})
      return { tools: [tool(`tool${n}`)], ttlMs: 60_000 }
    })
    const listed = async (): Promise<string[]> => (await client.listTools()).map(({ name }) => name)
    expect(await listed()).toEqual(['tool0'])
    await client.callTool('change')
    expect(await listed()).toEqual(['tool2'])
    expect(await listed()).toEqual(['tool3'])
    expect(await listed()).toEqual(['tool3'])
    expect(requests).toHaveLength(4)
  })

  test('of resources is dropped together with that of their templates, and no other', async () => {
    const { client, requests } = await scripted(({ method }) => ({ notify }) => {
      if (method === 'tools/call') notify('notifications/resources/list_changed', {})
      return { content: [], tools: [], resources: [], resourceTemplates: [], ttlMs: 60_000 }
    })
    const listAll = (): Promise<unknown> =>
      Promise.all([client.listTools(), client.listResources(), client.listResourceTemplates()])
    await listAll()
    await client.callTool('change')
    requests.length = 0
    await listAll()
    expect(requests.map(({ method }) => method)).toEqual(['resources/list', 'resources/templates/list'])
  })

  test('leaves out entries that are malformed, with a warning', async () => {
    const warn = vi.fn<() => void>()
    const tools = [
      tool('good'),
      null,
      'text',
      {},
      { name: 7 },
      { name: 'no schema' },
      { ...tool('odd'), outputSchema: 'text' },
    ]
    const { client } = await scripted(() => ({ tools }), { logger: { warn, error: warn } })
    expect((await client.listTools()).map(({ name }) => name)).toEqual(['good'])
    expect(warn).toHaveBeenCalledTimes(6)
  })
})

test('an entry with a name or an address that is too long is left out, and not even logged whole', async () => {
  const warn = vi.fn<(message: string, details?: object) => void>()
  const long = '\u20ac'.repeat(3_000)
  const { client } = await scripted(
    ({ method }) =>
      method === 'tools/list'
        ? { tools: [tool(long), tool('good')] }
        : {
            resources: [
              { name: 'a', uri: `memo://${long}` },
              { name: 'b', uri: 'memo://b' },
            ],
          },
    { logger: { warn, error: warn } },
  )
  expect((await client.listTools()).map(({ name }) => name)).toEqual(['good'])
  expect((await client.listResources()).map(({ name }) => name)).toEqual(['b'])
  expect(warn).toHaveBeenCalledTimes(2)
  expect(JSON.stringify(warn.mock.calls).length).toBeLessThan(1_000)
})

describe('a list without end is refused', () => {
  test.each<[string, (n: number) => object, object]>([
    [
      'that gives a cursor again',
      (n) => ({ tools: [], nextCursor: String(n % 3) }),
      {
        code: 'BAD_RESPONSE',
        message: expect.stringContaining('tools/list: the server sent the same nextCursor twice'),
      },
    ],
    [
      'of endless pages',
      (n) => ({ tools: [], nextCursor: String(n) }),
      { code: 'BAD_RESPONSE', message: expect.stringContaining('more than 1000 pages') },
    ],
    [
      'of endless entries',
      (n) => ({ tools: Array.from({ length: 30_000 }, (_, i) => tool(`t${i}`)), nextCursor: String(n) }),
      { code: 'BAD_RESPONSE', message: expect.stringContaining('more than 100000 entries') },
    ],
    [
      'that is too large altogether',
      (n) => ({ tools: [{ ...tool('a'), description: 'x'.repeat(4_000_000) }], nextCursor: String(n) }),
      { code: 'RESPONSE_TOO_LARGE' },
    ],
    [
      'of a cursor that is too long to be sent back',
      (n) => ({ tools: [], nextCursor: `${n} ${'\u20ac'.repeat(5_500)}` }),
      {
        code: 'BAD_RESPONSE',
        message: expect.stringContaining('tools/list: nextCursor must have at most 16384 bytes'),
      },
    ],
    ['of a cursor that is none', () => ({ tools: [], nextCursor: 7 }), { code: 'BAD_RESPONSE' }],
    [
      'that is none',
      () => ({ tools: {} }),
      { code: 'BAD_RESPONSE', message: expect.stringContaining('tools/list: tools must be a list') },
    ],
    ['that needs input', () => ({ resultType: 'input_required', requestState: 's' }), { code: 'BAD_RESPONSE' }],
  ])('%s', async (_what, said, expected) => {
    const { client } = await scripted((_request, n) => said(n))
    await expect(client.listTools()).rejects.toMatchObject(expected)
  })

  test('as is a completion that is none', async () => {
    const { client } = await scripted(() => ({ completion: { values: [7] } }))
    const complete = client.complete({ type: 'ref/prompt', name: 'a' }, { name: 'b', value: 'c' })
    await expect(complete).rejects.toMatchObject({ code: 'BAD_RESPONSE' })
  })
})
