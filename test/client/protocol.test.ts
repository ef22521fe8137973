// What goes over the wire in the rounds of a call, and what a client makes of servers that do not do as they should.
import { connect } from 'mcp-rally/client'
import { describe, expect, test, vi } from 'vitest'
import { asks, deferred, done, scripted, YES, yes } from './scripted.ts'
import { textOf } from './wires.ts'

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {
    elicitation: { form: {} },
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  },
  'io.modelcontextprotocol/clientInfo': { name: 'mcp-rally', version: '0.1.0' },
}

describe('the rounds of a call', () => {
  test('echo the state exactly, under a new id each, with the same arguments', async () => {
    const state = 'st\u00e4te "with" \\ everything \u{1f600}\n'
    const { client, requests } = await scripted(
      (_request, n) => [asks(['a'], state), asks(['b'], ''), done('ok')][n] ?? {},
      yes,
    )
    const args = { env: 'prod', list: [1, { deep: null }] }
    expect(textOf(await client.callTool('deploy', args))).toBe('ok')
    expect(requests.map(({ method, params }) => ({ method, params }))).toEqual([
      { method: 'tools/call', params: { _meta: META, name: 'deploy', arguments: args } },
      {
        method: 'tools/call',
        params: { _meta: META, name: 'deploy', arguments: args, inputResponses: { a: YES }, requestState: state },
      },
      {
        method: 'tools/call',
        params: { _meta: META, name: 'deploy', arguments: args, inputResponses: { b: YES }, requestState: '' },
      },
    ])
    expect(new Set(requests.map(({ id }) => id)).size).toBe(3)
  })

  test('have ids that another client, which resumes the call, does not repeat', async () => {
    const ids: number[] = []
    const script: Parameters<typeof scripted>[0] = ({ id, params }) => {
      ids.push(id)
      return params['requestState'] === undefined ? asks(['a'], 's') : done('ok')
    }
    const { client } = await scripted(script, { can: ['elicitation.form'] })
    for await (const round of client.rounds({ tool: 'deploy' })) {
      if (round.kind !== 'asks') continue
      for (let resumed = 0; resumed < 20; resumed += 1) {
        const { client: other } = await scripted(script, yes)
        await other.resume(round.pending, { a: YES })
      }
      break
    }
    expect(ids).toHaveLength(21)
    expect(new Set(ids).size).toBe(21)
    expect(ids.every((id) => id > 0 && id < 2 ** 31)).toBe(true)
  })

  test('send no state where none was given, also after one that was', async () => {
    const { client, requests } = await scripted(
      (_request, n) => [asks(['a'], 'state'), asks(['b']), done('ok')][n] ?? {},
      yes,
    )
    await client.callTool('deploy')
    expect(requests[2]?.params).toEqual({ _meta: META, name: 'deploy', inputResponses: { b: YES } })
  })

  test('send what the arguments were when the call began', async () => {
    const args = { env: 'prod' }
    const { client, requests } = await scripted((_request, n) => (n === 0 ? asks(['a']) : done('ok')), {
      onElicit: () => {
        args.env = 'changed'
        return YES
      },
    })
    await client.callTool('deploy', args)
    expect(requests.map(({ params }) => params['arguments'])).toEqual([{ env: 'prod' }, { env: 'prod' }])
  })

  test('that are put off are taken again with the state alone, after a pause, and do not count as asking', async () => {
    const { client, requests } = await scripted(
      (_request, n) => (n === 0 ? asks(['a'], 's0') : n <= 4 ? deferred(`s${n}`) : done('ok')),
      { ...yes, maxRounds: 1 },
    )
    expect(textOf(await client.callTool('deploy'))).toBe('ok')
    expect(requests.map(({ params }) => [params['requestState'], params['inputResponses']])).toEqual([
      [undefined, undefined],
      ['s0', { a: YES }],
      ['s1', undefined],
      ['s2', undefined],
      ['s3', undefined],
      ['s4', undefined],
    ])
  })

  test('that ask and give no type are over: an absent one is complete', async () => {
    const { client, requests } = await scripted(() => ({ content: [{ type: 'text', text: 'old' }] }), yes)
    expect(await client.callTool('deploy')).toMatchObject({ resultType: 'complete', content: [{ text: 'old' }] })
    expect(requests).toHaveLength(1)
  })

  test('of two calls at once keep to themselves', async () => {
    const { client, requests } = await scripted(
      ({ params }) =>
        params['inputResponses'] === undefined
          ? asks([`key of ${String(params['name'])}`], `state of ${String(params['name'])}`)
          : done('ok'),
      yes,
    )
    await Promise.all([client.callTool('one'), client.callTool('two')])
    for (const { params } of requests.filter((request) => 'inputResponses' in request.params)) {
      expect(params['requestState']).toBe(`state of ${String(params['name'])}`)
      expect(params['inputResponses']).toEqual({ [`key of ${String(params['name'])}`]: YES })
    }
  })

  test('take keys that JavaScript has other uses for', async () => {
    const request = JSON.parse(
      `{"resultType":"input_required","inputRequests":{"__proto__":{"method":"roots/list"},"constructor":{"method":"roots/list"}}}`,
    ) as object
    const { client, requests } = await scripted((_request, n) => (n === 0 ? request : done('ok')), {
      onRoots: () => [],
    })
    expect(textOf(await client.callTool('deploy'))).toBe('ok')
    expect(Object.entries(requests[1]?.params['inputResponses'] ?? {})).toEqual([
      ['__proto__', { roots: [] }],
      ['constructor', { roots: [] }],
    ])
  })
})

const input = (more: object): object => ({ resultType: 'input_required', ...more })

describe('a server is refused, clearly,', () => {
  const big = 'x'.repeat(70_000)

  test.each<[string, object, string, string]>([
    [
      'that gives a result of an unknown type',
      { resultType: 'later', task: {} },
      'BAD_RESPONSE',
      'the resultType of tools/call is unknown, got "later"',
    ],
    ['that gives no content', { resultType: 'complete' }, 'BAD_RESPONSE', 'content of tools/call must be a list'],
    ['that gives content of texts', { content: ['text'] }, 'BAD_RESPONSE', 'must be a list of objects'],
    ['that needs input and says not which', input({}), 'BAD_RESPONSE', 'neither inputRequests nor a requestState'],
    ['that needs input and asks nothing', input({ inputRequests: {} }), 'BAD_RESPONSE', 'neither inputRequests'],
    ['whose questions are a list', input({ inputRequests: [] }), 'BAD_RESPONSE', 'its inputRequests must be an object'],
    ['whose state is no text', input({ requestState: { a: 1 } }), 'BAD_RESPONSE', 'its requestState must be a string'],
    ['whose state is too large', input({ requestState: big }), 'STATE_TOO_LARGE', 'at most 65536 bytes, got 70000'],
    [
      'whose state is too large in bytes',
      input({ requestState: '\u20ac'.repeat(30_000) }),
      'STATE_TOO_LARGE',
      'got 90000',
    ],
    [
      'that asks an unknown kind of question',
      input({ inputRequests: { a: { method: 'ping' } } }),
      'QUESTION_INVALID',
      'its method is unknown, got "ping"',
    ],
    [
      'that asks what was not declared',
      input({ inputRequests: { a: { method: 'roots/list' } } }),
      'NO_ANSWERER',
      'asks "a" (a list of roots), and this client has no answerer for it. Pass onRoots to connect().',
    ],
  ])('%s', async (_what, said, code, message) => {
    const { client } = await scripted((_request, n) => (n === 0 ? said : done('still here')), yes)
    await expect(client.callTool('deploy')).rejects.toMatchObject({ code, message: expect.stringContaining(message) })
    expect(textOf(await client.callTool('deploy'))).toBe('still here')
  })

  test('that asks without end', async () => {
    const onElicit = vi.fn<() => typeof YES>(() => YES)
    const { client, requests } = await scripted((_request, n) => asks(['again'], `state ${n}`), { onElicit })
    await expect(client.callTool('deploy')).rejects.toMatchObject({
      code: 'TOO_MANY_ROUNDS',
      message:
        'tools/call deploy: the server asked in 11 rounds, and maxRounds is 10. To allow more rounds, raise maxRounds in connect(), or pass error.pending to client.resume().',
      pending: { requestState: 'state 10' },
    })
    expect(requests).toHaveLength(11)
    expect(onElicit).toHaveBeenCalledTimes(10)
  })

  test('that puts off without end, when the time is over', async () => {
    const { client } = await scripted((_request, n) => deferred(`state ${n}`), { timeoutMs: 200 })
    await expect(client.callTool('deploy')).rejects.toMatchObject({
      code: 'TIMEOUT',
      pending: { requestState: expect.stringMatching(/^state \d+$/) },
    })
  })

  test('that puts off without end, also by a client that has all the time', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    try {
      const { client, requests } = await scripted((_request, n) => deferred(`state ${n}`), { timeoutMs: Infinity })
      const call = client.callTool('deploy')
      call.catch(() => {})
      await vi.advanceTimersByTimeAsync(600_000)
      await expect(call).rejects.toMatchObject({
        code: 'TOO_MANY_ROUNDS',
        message: 'tools/call deploy: the server deferred the call 101 times, and the limit is 100.',
      })
      expect(requests).toHaveLength(101)
    } finally {
      vi.useRealTimers()
    }
  })

  test('that never has the version of a call: the waits grow, and what is left can be gone on with', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    try {
      const times: number[] = []
      const gone = { code: -32602, message: 'No.', data: { code: 'VERSION_CHANGED' } }
      const { client, requests } = await scripted((_request, n) => {
        times.push(performance.now())
        if (n === 0) return asks(['a'], 'state 0')
        // As our servers do: a few deferrals, then an error.
        return n <= 5 ? { ...deferred(`state ${n}`), _meta: { 'com.mcp-rally/deferred': 'version' } } : { error: gone }
      }, yes)
      const call = client.callTool('deploy')
      call.catch(() => {})
      await vi.advanceTimersByTimeAsync(60_000)
      await expect(call).rejects.toMatchObject({
        code: 'VERSION_CHANGED',
        cause: { rpcCode: -32602 },
        pending: { requestState: 'state 5' },
      })
      expect(requests).toHaveLength(27)
      expect(requests.slice(6).every(({ params }) => params['requestState'] === 'state 5')).toBe(true)
      const waits = times.slice(2).map((time, i) => time - (times[i + 1] ?? 0))
      expect(waits.every((wait, i) => wait >= Math.min(100 * 1.5 ** i, 1_500) / 2 - 1)).toBe(true)
      expect(waits.every((wait) => wait <= 1_501)).toBe(true)
    } finally {
      vi.useRealTimers()
    }
  })

  test('that asks 10 000 questions in a round, and nobody is bothered with any', async () => {
    const onElicit = vi.fn<() => typeof YES>(() => YES)
    const { client } = await scripted(
      () =>
        asks(
          Array.from({ length: 10_000 }, (_, i) => `q${i}`),
          'state',
        ),
      { onElicit },
    )
    await expect(client.callTool('deploy')).rejects.toMatchObject({ code: 'QUESTION_INVALID', pending: undefined })
    expect(onElicit).not.toHaveBeenCalled()
  })

  test('that asks somebody who is not there, and nobody else is bothered', async () => {
    const onElicit = vi.fn<() => typeof YES>(() => YES)
    const questions = { ...(asks(['a']) as { inputRequests: object }).inputRequests, b: { method: 'roots/list' } }
    const { client } = await scripted(() => input({ inputRequests: questions, requestState: 's' }), { onElicit })
    await expect(client.callTool('deploy')).rejects.toMatchObject({
      code: 'NO_ANSWERER',
      pending: { inputRequests: questions, requestState: 's' },
    })
    expect(onElicit).not.toHaveBeenCalled()
  })

  test.each([
    ['tools', { tools: [] }, 'tools: true'],
    ['a choice of tools', { toolChoice: { mode: 'auto' } }, 'tools: true'],
    ['context', { includeContext: 'allServers' }, 'context: true'],
  ])('that gives the model %s, which was not declared', async (_what, more, option) => {
    const params = { messages: [], maxTokens: 1, ...more }
    const { client } = await scripted(
      () => input({ inputRequests: { m: { method: 'sampling/createMessage', params } } }),
      {
        onSample: () => ({ role: 'assistant', content: [], model: 'm' }),
      },
    )
    await expect(client.callTool('deploy')).rejects.toMatchObject({
      code: 'NO_ANSWERER',
      message: expect.stringContaining(`onSample: { answer, ${option} }`),
    })
  })

  test('that has forgotten a flow, in its own words', async () => {
    const error = { code: -32602, message: 'Invalid or expired requestState' }
    const { client } = await scripted((_request, n) => (n === 0 ? asks(['a'], 's') : { error }), yes)
    await expect(client.callTool('deploy')).rejects.toMatchObject({
      code: 'PROTOCOL',
      rpcCode: -32602,
      message: error.message,
    })
  })
})

const refused = (supported: unknown): object => ({
  error: { code: -32022, message: 'Unsupported', data: { supported } },
})

const discovering = (said: object): ReturnType<typeof connect> =>
  connect({
    dispatch: async (message) => ({
      text: JSON.stringify({ jsonrpc: '2.0', id: (message as { id: number }).id, ...said }),
    }),
  })

test('an app that throws, or gives no answer, is a failure like any other', async () => {
  const client = await connect({
    dispatch: (message) => {
      const { id, method, params } = message as { id: number; method: string; params: { name?: string } }
      if (method === 'server/discover') {
        return Promise.resolve({ text: `{"jsonrpc":"2.0","id":${id},"result":{"supportedVersions":["2026-07-28"]}}` })
      }
      if (params.name === 'nothing') return Promise.resolve(undefined)
      throw new Error('It broke.')
    },
  })
  await expect(client.callTool('throws')).rejects.toMatchObject({
    code: 'LOST',
    message: expect.stringContaining('It broke.'),
  })
  await expect(client.callTool('nothing')).rejects.toMatchObject({ code: 'BAD_RESPONSE' })
})

describe('the revision', () => {
  test('that a server refuses is tried once more, out of those it names', async () => {
    const { client, requests } = await scripted((_request, n) =>
      n === 0 ? refused(['1999-01-01', '2026-07-28']) : done('ok'),
    )
    expect(textOf(await client.callTool('deploy'))).toBe('ok')
    expect(requests).toHaveLength(2)
    expect(requests[0]?.id).not.toBe(requests[1]?.id)
  })

  test('that a server goes on refusing is its last word', async () => {
    const { client, requests } = await scripted(() => refused(['2026-07-28']))
    await expect(client.callTool('deploy')).rejects.toMatchObject({ rpcCode: -32022 })
    expect(requests).toHaveLength(2)
  })

  test.each([
    [
      ['2031-01-01', '2030-01-01'],
      'The server supports revision 2031-01-01, 2030-01-01, this client supports 2026-07-28.',
    ],
    [undefined, 'The server supports no revision that it names, this client supports 2026-07-28.'],
  ])('that the two sides do not share is an error that names both: %j', async (supported, message) => {
    const { client } = await scripted(() => refused(supported))
    await expect(client.callTool('deploy')).rejects.toMatchObject({ code: 'REVISION', message })
  })

  test('must be one that the server says it supports', async () => {
    await expect(
      discovering({ result: { supportedVersions: ['2025-11-25'], capabilities: {} } }),
    ).rejects.toMatchObject({
      code: 'REVISION',
      message: 'The server supports revision 2025-11-25, this client supports 2026-07-28.',
    })
  })

  test('of a server that cannot be discovered is an older one', async () => {
    await expect(discovering({ error: { code: -32601, message: 'Method not found' } })).rejects.toMatchObject({
      code: 'REVISION',
      message: 'The server does not know server/discover, so it does not support revision 2026-07-28.',
      cause: { rpcCode: -32601 },
    })
  })

  test('is enough to know of a server that does not say its name', async () => {
    const client = await discovering({ result: { supportedVersions: ['2026-07-28'] } })
    expect(client.server).toEqual({ name: 'app', version: '', capabilities: {} })
  })
})

const list = (outputSchema: object, ttlMs = 0): object => ({
  tools: [{ name: 'add', inputSchema: { type: 'object' }, outputSchema }],
  ttlMs,
})

const result = (structuredContent: unknown, more: object = {}): object => ({
  content: [],
  structuredContent,
  ...more,
})

describe('the structured result of a tool', () => {
  const NUMBER = { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] }
  test('that does not fit its own schema is an error', async () => {
    const { client } = await scripted(({ method }) =>
      method === 'tools/list' ? list(NUMBER, 1_000) : result({ sum: 'three' }),
    )
    await client.listTools()
    await expect(client.callTool('add')).rejects.toMatchObject({
      code: 'RESULT_INVALID',
      message: 'The result of add does not match the outputSchema of the tool: /sum must be number.',
    })
  })

  test('that is missing is an error, unless the call failed', async () => {
    const { client } = await scripted(({ method, params }) =>
      method === 'tools/list'
        ? list(NUMBER, 1_000)
        : result(undefined, { isError: params['name'] === 'add' && params['arguments'] !== undefined }),
    )
    await client.listTools()
    await expect(client.callTool('add')).rejects.toMatchObject({
      code: 'RESULT_INVALID',
      message: expect.stringContaining('structuredContent is missing'),
    })
    expect(await client.callTool('add', {})).toMatchObject({ isError: true })
  })

  test('is not checked where the tool is not known, and no list is asked for', async () => {
    const { client, requests } = await scripted(() => result({ sum: 'three' }))
    expect(await client.callTool('add')).toMatchObject({ structuredContent: { sum: 'three' } })
    expect(requests.map(({ method }) => method)).toEqual(['tools/call'])
  })

  test('is checked against a new list where the one that is known is old', async () => {
    const schemas = [NUMBER, { type: 'object', properties: { sum: { type: 'string' } } }]
    const { client, requests } = await scripted(({ method }) =>
      method === 'tools/list' ? list(schemas.shift() ?? {}) : result({ sum: 'three' }),
    )
    await client.listTools()
    expect(await client.callTool('add')).toMatchObject({ structuredContent: { sum: 'three' } })
    expect(requests.map(({ method }) => method)).toEqual(['tools/list', 'tools/call', 'tools/list'])
  })

  test('that does not fit an old list, where no newer one is to be had, is an error and the call is over', async () => {
    const { client, requests } = await scripted(({ method, params }, n) => {
      if (method === 'tools/list') return n === 0 ? list(NUMBER) : { error: { code: -32603, message: 'Not now.' } }
      return params['inputResponses'] === undefined ? asks(['a'], 'state') : result({ sum: 'three' })
    }, yes)
    await client.listTools()
    await expect(client.callTool('add')).rejects.toMatchObject({ code: 'RESULT_INVALID', pending: undefined })
    expect(requests.map(({ method }) => method)).toEqual(['tools/list', 'tools/call', 'tools/call', 'tools/list'])
  })

  test('is let pass where the schema cannot be used, with a warning', async () => {
    const warn = vi.fn<() => void>()
    const { client } = await scripted(
      ({ method }) => (method === 'tools/list' ? list({ $ref: 'https://evil.example/' }) : result({ sum: 3 })),
      { logger: { warn, error: warn } },
    )
    await client.listTools()
    await client.callTool('add')
    expect(await client.callTool('add')).toMatchObject({ structuredContent: { sum: 3 } })
    expect(warn).toHaveBeenCalledOnce()
  })
})

describe('notifications', () => {
  test('that are malformed, of nobody, or of no use are passed over', async () => {
    const warn = vi.fn<() => void>()
    const progress = vi.fn<() => void>()
    const { client } = await scripted(
      ({ id }) =>
        ({ notify }) => {
          notify('notifications/progress', { progressToken: id + 1, progress: 1 })
          notify('notifications/progress', { progressToken: id, progress: 'much' })
          notify('notifications/progress', [])
          notify('notifications/message', { level: 7 })
          notify('notifications/resources/updated', { uri: 7 })
          notify('notifications/of/the/future', {})
          notify('sampling/createMessage', {})
          notify('notifications/progress', { progressToken: id, progress: 0.5 })
          return done('ok')
        },
      { logger: { warn, error: warn }, onLog: progress },
    )
    expect(textOf(await client.callTool('deploy', {}, { onProgress: progress }))).toBe('ok')
    expect(progress.mock.calls).toEqual([[{ progress: 0.5 }]])
    expect(warn).toHaveBeenCalledOnce()
  })

  test('whose reader fails harm no call', async () => {
    const error = vi.fn<() => void>()
    const { client } = await scripted(
      ({ id }) =>
        ({ notify }) => {
          notify('notifications/progress', { progressToken: id, progress: 1 })
          return done('ok')
        },
      { logger: { warn: error, error } },
    )
    const onProgress = vi.fn<() => void>().mockImplementation(() => {
      throw new Error('no')
    })
    expect(textOf(await client.callTool('deploy', {}, { onProgress }))).toBe('ok')
    expect(error).toHaveBeenCalledOnce()
  })

  test('are asked for only by who listens: a progress token for progress, a level for logs', async () => {
    const silent = await scripted(() => done('ok'))
    await silent.client.callTool('deploy')
    expect(silent.requests[0]?.params['_meta']).not.toHaveProperty('progressToken')
    expect(silent.requests[0]?.params['_meta']).not.toHaveProperty(['io.modelcontextprotocol/logLevel'])
    const keen = await scripted(() => done('ok'), { onLog: () => {}, logLevel: 'debug' })
    await keen.client.callTool('deploy', {}, { onProgress: () => {} })
    const [{ id, params } = { id: 0, params: { _meta: {} } }] = keen.requests
    expect(params['_meta']).toMatchObject({ progressToken: id, 'io.modelcontextprotocol/logLevel': 'debug' })
  })
})

describe('wrong use is an error that says what is wrong', () => {
  test.each<[string, () => Promise<unknown>, string]>([
    ['an address that is none', () => connect('nonsense'), 'got "nonsense"'],
    ['an address of another scheme', () => connect('ftp://a/'), 'must begin with http: or https:, got "ftp:"'],
    ['a password in the address', () => connect('http://a:b@c/'), 'Use the option headers'],
    ['nothing to connect to', () => connect({} as never), 'connect(): the server must be a URL, { command } or an app'],
    ['null', () => connect(null as never), 'connect(): the server must be a URL, { command } or an app'],
    ['a limit of nothing', () => connect('http://a/', { maxRounds: 0 }), 'maxRounds must be a number above 0, got 0'],
    [
      'a limit that is no number',
      () => connect('http://a/', { timeoutMs: NaN }),
      'timeoutMs must be a number above 0, got NaN',
    ],
    ['an unknown level', () => connect('http://a/', { logLevel: 'loud' as never }), 'logLevel must be one of debug'],
    ['a string for true', () => connect('http://a/', { tasks: 'false' as never }), 'tasks must be true or false'],
    ['no logger', () => connect('http://a/', { logger: {} as never }), 'logger must have the functions warn and error'],
    ['an unknown capability', () => connect('http://a/', { can: ['all' as never] }), 'got "all"'],
    ['a header of ours', () => connect('http://a/', { headers: { 'Mcp-Name': 'a' } }), 'Mcp-Name is set by the client'],
    [
      'a header that is none',
      () => connect('http://a/', { headers: { 'a b': 'c' } }),
      '"a b" is not a valid header name',
    ],
    [
      'a value that is none',
      () => connect('http://a/', { headers: { a: 'b\r\nc' } }),
      'the value of a must be a string',
    ],
  ])('%s', async (_what, use, message) => {
    await expect(use()).rejects.toMatchObject({ code: 'OPTION_INVALID', message: expect.stringContaining(message) })
  })

  test.each<[string, (client: Awaited<ReturnType<typeof scripted>>['client']) => Promise<unknown>, string]>([
    ['no name', (client) => client.callTool(undefined as never), 'tools/call: the name must be a string'],
    [
      'arguments in a list',
      (client) => client.callTool('a', [] as never),
      'tools/call "a": the arguments must be an object',
    ],
    ['what JSON would lose', (client) => client.callTool('a', { when: new Date() }), '$.when is a Date'],
    [
      'nothing to read',
      (client) => client.readResource(7 as never),
      'must have one of `tool`, `prompt` and `resource`',
    ],
    [
      'no time at all',
      (client) => client.callTool('a', {}, { timeoutMs: -1 }),
      'timeoutMs must be a number above 0, got -1',
    ],
    ['no time for a list', (client) => client.listTools({ timeoutMs: 0 }), 'timeoutMs must be a number above 0, got 0'],
  ])('%s', async (_what, use, message) => {
    const { client, requests } = await scripted(() => done('ok'))
    await expect(use(client)).rejects.toThrow(message)
    expect(requests).toEqual([])
  })
})
