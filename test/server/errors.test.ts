// What a caller reads when something fails, and what the log and `onError` get: in production, on every carrier.
import type { ErrorContext, Rally, RallyOptions } from 'mcp-rally'
import { Declined, MemoryStore, ProtocolError, rally, RallyError, send, ToolError } from 'mcp-rally'
import { connect } from 'mcp-rally/client'
import { serve } from 'mcp-rally/node'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { callThrough, openCarrying } from '../legacy/carried.ts'
import { RawSession } from '../legacy/raw.ts'
import { Caller as TaskCaller } from '../tasks/caller.ts'
import { Office } from '../tasks/office.ts'
import { accept, askedIn, call, errorOf, request, resultOf } from '../wire/messages.ts'

const PASSWORD = 'postgres://admin:hunter2@db/prod'
const driverError = (): Error => new Error(`connect ECONNREFUSED ${PASSWORD}`)
const MASKED = /^The tool failed\. Reference: [\w-]{11}$/

interface Reported {
  readonly error: unknown
  readonly context: ErrorContext
}

function options(reported: Reported[], logged: unknown[] = []): RallyOptions {
  const log = (message: string, details?: Record<string, unknown>): void => void logged.push({ message, ...details })
  return {
    name: 'shop',
    version: '1.0.0',
    keys: ['a secret of the tests of errors, long enough'],
    logger: { warn: log, error: log },
    showErrors: false,
    onError: (error, context) => void reported.push({ error, context }),
  }
}

function addTo(app: Rally): Rally {
  return app
    .tool('plain', { input: z.object({ n: z.number().optional() }) }, () => Promise.reject(driverError()))
    .tool('sold_out', {}, () => Promise.reject(new ToolError('Sold out. Ask for another size.')))
    .tool('in_step', {}, async (_args, io) => {
      await io.ask('n', 'A number?', z.object({ n: z.number() }))
      await io.step('pay', () => Promise.reject(driverError()))
      return 'never'
    })
    .tool('in_scope', {}, (_args, io) =>
      io.scope('outer', (inner) =>
        inner.step('pay', (): string => {
          throw driverError()
        }),
      ),
    )
    .tool('tells', {}, (_args, io) =>
      io.scope('outer', (inner) =>
        inner.step('pay', (): string => {
          throw new ToolError('The card was refused.')
        }),
      ),
    )
    .tool('declined', {}, () => Promise.reject(new Declined('sure', 'decline')))
    .prompt(
      'p',
      { arguments: z.object({ a: z.string().optional() }), complete: { a: () => Promise.reject(driverError()) } },
      () => {
        throw driverError()
      },
    )
    .resource('a://b', { name: 'b' }, () => {
      throw driverError()
    })
}

describe('over 2026-07-28', () => {
  test('the message of any error stays in the process; the log and onError have it, with the same reference', async () => {
    const reported: Reported[] = []
    const logged: { error?: unknown; reference?: string }[] = []
    const app = addTo(rally(options(reported, logged)))
    const caller = { principal: 'alice' }
    const text = textIn(await send(app, call('plain'), { caller }))
    expect(text).toMatch(MASKED)
    const [only] = reported
    expect(reported).toHaveLength(1)
    expect(only?.error).toEqual(driverError())
    expect(only?.context).toEqual({
      method: 'tools/call',
      target: 'plain',
      tool: 'plain',
      key: undefined,
      flow: expect.stringMatching(/^[\w-]{11}$/),
      round: 0,
      caller: { principal: 'alice', scopes: [], claims: {} },
      reference: text.slice(-11),
    })
    expect(logged).toEqual([expect.objectContaining({ error: driverError(), reference: text.slice(-11) })])
  })

  test.each(['in_step', 'in_scope'])(
    'a failure in a step has the reference of its step, and is reported once (%s)',
    async (tool) => {
      const reported: Reported[] = []
      const app = addTo(rally(options(reported)))
      let response = await send(app, call(tool))
      if (tool === 'in_step') {
        const round = { requestState: askedIn(response).state, inputResponses: { n: accept({ n: 1 }) } }
        response = await send(app, call(tool, {}, round))
        // The same round again: another process would replay it, or run it again.
        expect(textIn(await send(app, call(tool, {}, round)))).toBe(textIn(response))
      }
      const text = textIn(response)
      expect(text).toMatch(MASKED)
      const references = new Set(reported.map(({ context }) => context.reference))
      expect(references).toEqual(new Set([text.slice(-11)]))
      expect(reported[0]?.context.key).toBe(tool === 'in_step' ? 'pay' : 'outer>pay')
    },
  )

  test.each([
    { tool: 'sold_out', says: 'Sold out. Ask for another size.' },
    { tool: 'tells', says: 'The card was refused.' },
    { tool: 'declined', says: 'The user declined the question "sure". Nothing further was done.' },
  ])('what an author says is read as it is, and is no failure ($tool)', async ({ tool, says }) => {
    const reported: Reported[] = []
    expect(textIn(await send(addTo(rally(options(reported))), call(tool)))).toBe(says)
    expect(reported).toEqual([])
  })

  test('a ToolError is recorded as one: a replay treats it alike', async () => {
    const app = rally(options([])).tool('t', {}, async (_args, io) => {
      const paid = io.step('pay', () => Promise.reject(new ToolError('The card was refused.')))
      await paid.catch(() => {})
      await io.ask('n', 'A number?', z.object({ n: z.number() }))
      return paid
    })
    const { state } = askedIn(await send(app, call('t')))
    const round = { requestState: state, inputResponses: { n: accept({ n: 1 }) } }
    expect(textIn(await send(app, call('t', {}, round)))).toBe('The card was refused.')
  })

  test('an argument error still tells the model what to correct', async () => {
    const text = textIn(await send(addTo(rally(options([]))), call('plain', { n: 'x' })))
    expect(text).toContain('Invalid arguments for plain: n:')
  })

  test('prompts, resources and completions say no more', async () => {
    const reported: Reported[] = []
    const app = addTo(rally(options(reported)))
    const ref = { type: 'ref/prompt', name: 'p' }
    const answers = [
      errorOf(await send(app, request('prompts/get', { name: 'p' }))).message,
      errorOf(await send(app, request('resources/read', { uri: 'a://b' }))).message,
      errorOf(await send(app, request('completion/complete', { ref, argument: { name: 'a', value: '' } }))).message,
    ]
    expect(answers).toEqual([
      expect.stringMatching(/^The prompt failed\. Reference: [\w-]{11}$/),
      expect.stringMatching(/^The resource failed\. Reference: [\w-]{11}$/),
      expect.stringMatching(/^The completion failed\. Reference: [\w-]{11}$/),
    ])
    expect(reported.map(({ context }) => [context.method, context.target, context.reference])).toEqual([
      ['prompts/get', 'p', answers[0]?.slice(-11)],
      ['resources/read', 'a://b', answers[1]?.slice(-11)],
      ['completion/complete', 'p', answers[2]?.slice(-11)],
    ])
  })

  test.each([
    {
      thrown: 'a ToolError',
      error: () => new ToolError('No such city.'),
      says: 'No such city.',
      told: 0,
      level: 'debug',
    },
    {
      thrown: 'a ProtocolError',
      error: () => new ProtocolError(-32602, 'Bad city.'),
      says: 'Bad city.',
      told: 0,
      level: 'debug',
    },
    {
      thrown: "an error of Rally's own",
      error: () => new RallyError('OPTION_INVALID', 'It has a limit.'),
      says: 'It has a limit.',
      told: 1,
      level: 'warn',
    },
    {
      thrown: 'anything else',
      error: driverError,
      says: /^The \w+ failed\. Reference: [\w-]{11}$/,
      told: 1,
      level: 'error',
    },
  ])('a completion and a method of the app treat $thrown as a prompt does', async ({ error, says, told, level }) => {
    const reported: Reported[] = []
    const lines: object[] = []
    const line = (at: string) => (_message: string, fields: object | undefined) => lines.push({ level: at, ...fields })
    const logger = { debug: line('debug'), warn: line('warn'), error: line('error') }
    const fail = (): Promise<never> => Promise.reject(error())
    const app = rally({ ...options(reported), logger })
      .prompt('p', { arguments: z.object({ a: z.string().optional() }), complete: { a: fail } }, fail)
      .method('com.example/fails', {}, fail)
    const ref = { type: 'ref/prompt', name: 'p' }
    const said = [
      errorOf(await send(app, request('prompts/get', { name: 'p' }))).message,
      errorOf(await send(app, request('completion/complete', { ref, argument: { name: 'a', value: '' } }))).message,
      errorOf(await send(app, request('com.example/fails'))).message,
    ]
    for (const each of said) expect(each).toMatch(says)
    expect(lines).toMatchObject([
      { level, method: 'prompts/get', target: 'p' },
      { level, method: 'completion/complete', target: 'p' },
      { level, method: 'com.example/fails', target: 'com.example/fails' },
    ])
    expect(reported).toHaveLength(3 * told)
    if (level === 'error')
      expect(said.map((each) => each.slice(-11))).toEqual(lines.map((each) => 'reference' in each && each.reference))
  })

  test('a completion and a method of the app show everything with showErrors', async () => {
    const app = addTo(rally({ ...options([]), showErrors: true })).method('com.example/fails', {}, () => {
      throw driverError()
    })
    const ref = { type: 'ref/prompt', name: 'p' }
    const completion = request('completion/complete', { ref, argument: { name: 'a', value: '' } })
    expect(errorOf(await send(app, completion)).message).toContain('hunter2')
    expect(errorOf(await send(app, request('com.example/fails'))).message).toContain('hunter2')
  })

  test.each([
    ['a ProtocolError in a step', 'step', () => new ProtocolError(-32000, PASSWORD)],
    ['a ProtocolError in a scope', 'scope', () => new ProtocolError(-32000, PASSWORD)],
    ['a Declined in a step', 'step', () => new Declined('other', 'decline')],
  ])('%s is a failure: the log and onError have the reference that the caller reads', async (_what, kind, error) => {
    const reported: Reported[] = []
    const errors: object[] = []
    const logger = { warn() {}, error: (_message: string, fields?: object) => void errors.push({ ...fields }) }
    const fail = (): Promise<never> => Promise.reject(error())
    const app = rally({ ...options(reported), logger }).tool('t', {}, (_args, io) =>
      kind === 'step' ? io.step('pay', fail) : io.scope('pay', fail),
    )
    const text = textIn(await send(app, call('t')))
    expect(text).toMatch(MASKED)
    expect(errors).toMatchObject([{ key: 'pay', reference: text.slice(-11), error: error() }])
    expect(reported).toMatchObject([{ context: { key: 'pay', reference: text.slice(-11) } }])
  })

  test.each([
    [
      'throws',
      () => {
        throw new Error('the tracker is down')
      },
    ],
    ['rejects', () => Promise.reject(new Error('the tracker is down')) as never],
  ])('an onError that %s fails nothing', async (_how, onError: () => void) => {
    const logged: { message?: string }[] = []
    const app = addTo(rally({ ...options([], logged), onError }))
    expect(textIn(await send(app, call('plain')))).toMatch(MASKED)
    await vi.waitFor(() => expect(logged.map(({ message }) => message)).toContain('onError() failed.'))
  })
})

/** A server that answers with the words of its database. */
const upstream = (): Rally =>
  rally({ ...options([]), name: 'upstream' }).tool('broken', {}, () =>
    Promise.reject(new ProtocolError(-32000, PASSWORD, { url: PASSWORD })),
  )

/** An app whose every part calls that server. */
function calling(revision: string, reported: Reported[]): { app: Rally; close: () => Promise<void> } {
  const other = serve(upstream(), { port: 0, handleSignals: false })
  const fail = async (): Promise<never> => {
    const client = await connect((await other).url, { revision })
    try {
      await client.callTool('broken', {})
    } catch (error) {
      expect(error).toBeInstanceOf(ProtocolError)
      expect(error).toMatchObject({ name: 'ProtocolError', code: 'PROTOCOL', rpcCode: -32000, message: PASSWORD })
      throw error
    } finally {
      await client.close()
    }
    throw new Error('It must fail.')
  }
  const app = rally(options(reported))
    .tool('plain', {}, fail)
    .tool('in_step', {}, (_args, io) => io.step('call', fail))
    .prompt('p', { arguments: z.object({ a: z.string().optional() }), complete: { a: fail } }, fail)
    .resource('a://b', { name: 'b' }, fail)
    .method('com.example/fails', {}, fail)
    .use(({ method }, next) => (method === 'tools/list' ? fail() : next()))
  return { app, close: async () => (await other).close() }
}

describe('what a server answered to our client is never read by the callers of the handler', () => {
  const requests = [
    call('plain'),
    call('in_step'),
    request('prompts/get', { name: 'p' }),
    request('resources/read', { uri: 'a://b' }),
    request('completion/complete', { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' } }),
    request('com.example/fails'),
    request('tools/list'),
  ]

  test.each(['2026-07-28', '2025-11-25'])('from a server of %s', async (revision) => {
    const reported: Reported[] = []
    const { app, close } = calling(revision, reported)
    const texts: string[] = []
    for (const message of requests) texts.push(JSON.stringify(await send(app, message)))
    await close()
    for (const text of texts) expect(text).toMatch(/failed\. Reference: [\w-]{11}"/)
    expect(texts.join('\n')).not.toContain('hunter2')
    expect(texts.map((text) => /Reference: ([\w-]{11})/.exec(text)?.[1])).toEqual(
      reported.map(({ context }) => context.reference),
    )
    for (const { error } of reported) expect(error).toMatchObject({ message: PASSWORD })
  })

  test('a step is tried again after it: the author has decided nothing', async () => {
    const client = await connect(upstream())
    let attempts = 0
    const retry = { retries: 1, backoff: { firstMs: 1, maxMs: 1 } }
    const app = rally(options([])).tool('t', {}, (_args, io) =>
      io.step('call', async () => ((attempts += 1), JSON.stringify(await client.callTool('broken', {}))), retry),
    )
    expect(textIn(await send(app, call('t')))).toMatch(MASKED)
    await client.close()
    expect(attempts).toBe(2)
  })

  test('in sessions of older revisions too', async () => {
    const reported: Reported[] = []
    const { app, close } = calling('2026-07-28', reported)
    const { url, close: closeOwn } = await serve(app, { port: 0, handleSignals: false })
    const client = await connect(url, { revision: '2025-11-25' })
    const texts = [
      JSON.stringify(await client.callTool('plain', {}, { signal: AbortSignal.timeout(10_000) })),
      await client.getPrompt('p', {}).catch(String),
      await client.readResource('a://b').catch(String),
      await client.listTools().catch(String),
    ]
    await client.close()
    await closeOwn()
    await close()
    for (const text of texts) expect(text).toMatch(/failed\. Reference: [\w-]{11}/)
    expect(reported).toHaveLength(4)
  })
})

const DRAFTS = ['2026-06-XX', '2026-02-03-draft'] as const

test.each(['2025-11-25', ...DRAFTS])('over %s it is the same', async (revision) => {
  const reported: Reported[] = []
  const app = addTo(rally({ ...options(reported), revisions: [...DRAFTS] }))
  const { url, close } = await serve(app, { port: 0, handleSignals: false })
  const client = await connect(url, { revision, onElicit: () => accept({ n: 1 }) })
  const said = async (tool: string): Promise<string> => {
    const { content } = await client.callTool(tool, {})
    return (content as { text: string }[])[0]?.text ?? ''
  }
  expect(await said('plain')).toMatch(MASKED)
  const text = await said('in_step')
  expect(text).toMatch(MASKED)
  expect(reported.map(({ context }) => context.reference)).toContain(text.slice(-11))
  expect(await said('sold_out')).toBe('Sold out. Ask for another size.')
  await client.close()
  await close()
})

test('a 2025-era call that an answer resumes says no more, and neither does what its client fetches', async () => {
  const reported: Reported[] = []
  const app = addTo(rally(options(reported)))
  const session = await openCarrying((init) => app.fetch(new Request('http://localhost/mcp', init)))
  const segments = await callThrough(session, 'in_step', () => accept({ n: 1 }))
  expect(JSON.stringify(segments)).not.toContain('hunter2')
  const text = textIn(segments.at(-1)?.last)
  expect(text).toMatch(MASKED)
  expect(reported).toMatchObject([{ error: driverError(), context: { key: 'pay', reference: text.slice(-11) } }])
})

test('a task of a 2025-era client says no more, in any of its answers', async () => {
  const reported: Reported[] = []
  const app = rally({ ...options(reported), store: new MemoryStore() })
  app.tool('long', { task: 'always' }, (_args, io) => io.step('pay', () => Promise.reject(driverError())))
  const session = await RawSession.open((init) => app.fetch(new Request('http://localhost/mcp', init)))
  const created = await session.json('tools/call', { name: 'long', task: {} })
  const { task } = resultOf(created) as { task: { taskId: string } }
  const { taskId } = task
  const status = async (): Promise<unknown> => resultOf(await session.json('tasks/get', { taskId }))['status']
  await expect.poll(status, { timeout: 10_000 }).not.toBe('working')
  const result = await session.json('tasks/result', { taskId })
  expect(textIn(result)).toMatch(MASKED)
  expect(JSON.stringify([created, result, await session.json('tasks/get', { taskId })])).not.toContain('hunter2')
  expect(reported).toMatchObject([{ error: driverError(), context: { tool: 'long', key: 'pay' } }])
  app.interrupt()
})

test('in a task it is the same: neither its result nor its status message has the password', async () => {
  const reported: Reported[] = []
  const office = new Office()
  const { app } = office.instance(
    (each) => each.tool('long', { task: 'always' }, (_args, io) => io.step('pay', () => Promise.reject(driverError()))),
    { showErrors: false, onError: (error, context) => void reported.push({ error, context }) },
  )
  const alice = new TaskCaller(office, app, 'alice')
  const task = await alice.ended(await alice.begin('long'))
  expect(JSON.stringify(task)).not.toContain('hunter2')
  expect(task.result?.content[0]?.text).toMatch(MASKED)
  expect(reported).toMatchObject([{ context: { tool: 'long', key: 'pay', caller: { principal: 'alice' } } }])
})

test.each([
  { mode: 'production', shows: false },
  { mode: undefined, shows: false },
  { mode: 'staging', shows: false },
  { mode: 'development', shows: true },
  { mode: 'test', shows: true },
])('with NODE_ENV $mode, showErrors is $shows', async ({ mode, shows }) => {
  vi.stubEnv('NODE_ENV', mode)
  const { showErrors: _, ...rest } = options([])
  const app = addTo(rally(rest))
  vi.unstubAllEnvs()
  expect(textIn(await send(app, call('plain'))).includes('hunter2')).toBe(shows)
})

function textIn(response: object | undefined): string {
  const { content } = resultOf(response) as { content: { text: string }[] }
  return content[0]?.text ?? ''
}
