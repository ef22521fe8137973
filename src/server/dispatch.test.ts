import type { Rally } from 'mcp-rally'
import { rally } from 'mcp-rally'
import { describe, expect, test } from 'vitest'
import { accept, call, EVERYTHING, request } from '../../test/wire/messages.ts'
import { checkMessage } from '../../test/wire/spec.ts'
import { META_CAPABILITIES, META_LOG_LEVEL } from '../protocol/revisions/2026-07-28.ts'

const quiet = { warn() {}, error() {} }

function newApp(): Rally {
  return rally({ name: 'dispatch', version: '1', logger: quiet, keys: ['a secret, long enough for the tests'] })
}

async function dispatched(app: Rally, message: object): Promise<{ status: number; answer: Record<string, unknown> }> {
  const reply = await app.dispatch(message)
  const answer = JSON.parse(reply?.text ?? 'null') as Record<string, unknown>
  checkMessage(answer, Reflect.get(message, 'method'))
  return { status: reply?.status ?? 0, answer }
}

describe('the id of a response', () => {
  test.each([0, 1, -7, 2 ** 53 - 1, '', 'a', '0', '"\\\n\u2028\ud800'])('is that of the request: %j', async (id) => {
    const { answer } = await dispatched(newApp(), { ...request('tools/list'), id })
    expect(answer['id']).toBe(id)
  })

  test.each([1.5, 2 ** 53, 1e300, null, true, [], {}])('is left out where that was none: %j', async (id) => {
    const { status, answer } = await dispatched(newApp(), { ...request('tools/list'), id })
    expect(answer).toEqual({
      jsonrpc: '2.0',
      error: { code: -32600, message: 'Invalid request: id must be a string or an integer' },
    })
    expect(status).toBe(400)
  })
})

describe('the handshake of older revisions', () => {
  test.each<unknown>(['2024-11-05', 'x', undefined, null, 7, {}, { toString: 1, valueOf: 2 }])(
    'is told the revisions that are spoken: %j',
    async (protocolVersion) => {
      const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion } }
      const { status, answer } = await dispatched(newApp(), initialize)
      expect(status).toBe(400)
      expect(answer).toMatchObject({ error: { code: -32022, data: { supported: ['2026-07-28'] } } })
    },
  )
})

describe('what a client declares', () => {
  const app = newApp()
  app.tool('what', {}, (_args, io) =>
    (['elicitation.form', 'elicitation.url', 'sampling', 'sampling.tools', 'sampling.context', 'roots'] as const)
      .filter((capability) => io.can(capability))
      .join(' '),
  )
  const told = async (capabilities: object): Promise<unknown> => {
    const { answer } = await dispatched(app, call('what', {}, {}, { [META_CAPABILITIES]: capabilities }))
    return (answer['result'] as { content: { text: string }[] }).content[0]?.text
  }

  test.each([
    { capabilities: {}, can: '' },
    { capabilities: { elicitation: {} }, can: 'elicitation.form' },
    { capabilities: { elicitation: { form: {} } }, can: 'elicitation.form' },
    { capabilities: { elicitation: { url: {} } }, can: 'elicitation.url' },
    { capabilities: { elicitation: { form: {}, url: {} } }, can: 'elicitation.form elicitation.url' },
    { capabilities: { sampling: {} }, can: 'sampling' },
    { capabilities: { sampling: { tools: {} } }, can: 'sampling sampling.tools' },
    { capabilities: { sampling: { context: {} } }, can: 'sampling sampling.context' },
    { capabilities: { roots: {} }, can: 'roots' },
    { capabilities: { elicitation: null, sampling: false, roots: 1, tasks: {} }, can: '' },
    {
      capabilities: EVERYTHING,
      can: 'elicitation.form elicitation.url sampling sampling.tools sampling.context roots',
    },
  ])('$capabilities means $can', async ({ capabilities, can }) => {
    expect(await told(capabilities)).toBe(can)
  })

  test('is what io.can says on every pass; whether a question may be sent is up to the current request', async () => {
    const asking = newApp()
    asking.tool('ask', {}, async (_args, io) => {
      const first = io.can('roots')
      await io.confirm('one', 'One?')
      if (first !== io.can('roots')) return 'It has changed.'
      await io.confirm('two', 'Two?')
      return `roots: ${first}`
    })
    const { answer } = await dispatched(asking, call('ask'))
    const { requestState } = answer['result'] as { requestState: string }
    const retry = (declared: object): object =>
      call(
        'ask',
        {},
        { requestState, inputResponses: { one: accept({ confirm: true }) } },
        { [META_CAPABILITIES]: declared },
      )
    expect((await dispatched(asking, retry({}))).answer).toMatchObject({ error: { code: -32021 } })
    const next = (await dispatched(asking, retry({ elicitation: {} }))).answer['result'] as { requestState: string }
    const last = call(
      'ask',
      {},
      { requestState: next.requestState, inputResponses: { two: accept({ confirm: true }) } },
    )
    expect((await dispatched(asking, last)).answer).toMatchObject({ result: { content: [{ text: 'roots: true' }] } })
  })
})

async function notified(meta: object, run: (io: never) => void): Promise<Record<string, unknown>[]> {
  const app = newApp().tool('run', {}, (_args, io) => {
    run(io as never)
    return 'ran'
  })
  const notifications: Record<string, unknown>[] = []
  const reply = await app.dispatch(call('run', {}, {}, meta), {
    notify: (text) => notifications.push(JSON.parse(text) as Record<string, unknown>),
  })
  expect(reply?.text).toContain('"text":"ran"')
  for (const notification of notifications) checkMessage(notification, 'tools/call')
  return notifications
}

describe('notifications', () => {
  const levels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
  interface Logs {
    log(level: string, data: unknown): void
  }

  test.each(levels)('of the log are sent from the level %s on that the client named', async (level) => {
    const sent = await notified({ [META_LOG_LEVEL]: level }, (io: Logs) => {
      for (const each of levels) io.log(each, { each })
    })
    const wanted = levels.slice(levels.indexOf(level))
    expect(sent.map(({ params }) => params)).toEqual(wanted.map((each) => ({ level: each, data: { each } })))
  })

  const circle: unknown[] = []
  circle.push(circle)
  test.each<{ data: unknown; told: unknown }>([
    { data: 5n, told: '5' },
    { data: undefined, told: null },
    { data: null, told: null },
    { data: circle, told: '' },
    { data: () => 1, told: null },
    { data: { at: new Date(0) }, told: { at: '1970-01-01T00:00:00.000Z' } },
  ])('of the log hold what JSON can, and never fail the call: $told', async ({ data, told }) => {
    const sent = await notified({ [META_LOG_LEVEL]: 'debug' }, (io: Logs) => io.log('info', data))
    expect(sent).toMatchObject([{ params: { level: 'info', data: told } }])
  })

  test('of progress that is no number are not sent', async () => {
    const sent = await notified({ progressToken: 1 }, (io: { progress(n: number, total?: number): void }) => {
      io.progress(Number.NaN)
      io.progress(1, Number.POSITIVE_INFINITY)
    })
    expect(sent.map(({ params }) => params)).toEqual([{ progressToken: 1, progress: 1 }])
  })

  test.each([0, 7, '', 'a'])('of progress carry the token %j', async (progressToken) => {
    const sent = await notified({ progressToken }, (io: { progress(n: number): void }) => io.progress(0.5))
    expect(sent).toEqual([
      { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: 0.5 } },
    ])
  })
})
