import type { Rally } from 'mcp-rally'
import { FlowError, ProtocolError, rally, send } from 'mcp-rally'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { accept, askedIn, call, errorOf, resultOf, textOf } from '../../test/wire/messages.ts'
import { checkMessage } from '../../test/wire/spec.ts'
import { META_SERVER_INFO } from '../protocol/revisions/2026-07-28.ts'

interface Logged {
  message: string
  details: Record<string, unknown> | undefined
}

/** An app whose one tool does this. */
function doing(run: (...args: never[]) => unknown, options: object = {}): { app: Rally; logged: Logged[] } {
  const logged: Logged[] = []
  const log = (message: string, details?: unknown): void =>
    void logged.push({ message, details: details as Logged['details'] })
  const app = rally({ name: 'content', version: '1', logger: { warn: log, error: log }, ...options })
  app.tool('do', {}, run as never)
  return { app, logged }
}

async function ask(app: Rally): Promise<object | undefined> {
  const response = await send(app, call('do'))
  checkMessage(response, 'tools/call')
  return response
}

const link = { type: 'resource_link', uri: 'file:///a', name: 'a' } as const
const text = (words: string): object => ({ type: 'text', text: words })

describe('what a handler returns', () => {
  test.each([
    { what: 'a text', value: 'Hello', content: [text('Hello')] },
    { what: 'an empty text', value: '', content: [text('')] },
    { what: 'a text with quotes, newlines and half a character', value: '"\n\ud800', content: [text('"\n\ud800')] },
    { what: 'nothing', value: undefined, content: [] },
    { what: 'null', value: null, content: [] },
    { what: 'a number', value: 42, content: [text('42')] },
    { what: 'zero', value: 0, content: [text('0')] },
    { what: 'true', value: true, content: [text('true')] },
    { what: 'false', value: false, content: [text('false')] },
    { what: 'a block', value: link, content: [link] },
    {
      what: 'a picture',
      value: { type: 'image', data: 'AAAA', mimeType: 'image/png' },
      content: [{ type: 'image', data: 'AAAA', mimeType: 'image/png' }],
    },
    { what: 'blocks', value: [text('a'), link], content: [text('a'), link] },
    { what: 'no blocks', value: [], content: [] },
    { what: 'a function', value: () => 1, content: [text('')] },
  ])('$what is the content', async ({ value, content }) => {
    const result = resultOf(await ask(doing(() => value).app))
    expect(result).toEqual({
      resultType: 'complete',
      content,
      _meta: { [META_SERVER_INFO]: { name: 'content', version: '1' } },
    })
    expect(resultOf(await ask(doing(async () => value).app))).toEqual(result)
  })

  test.each([
    { what: 'an object', value: { a: 1, b: [true, null] } },
    { what: 'an empty object', value: {} },
    { what: 'an object with a type that is no block', value: { type: 'invoice', total: 3 } },
    { what: 'a list of other things', value: [1, 2, 3] },
    { what: 'a list of which not all are blocks', value: [text('a'), 7] },
    { what: 'an object with content that is no list of blocks', value: { content: 'words' } },
  ])('$what is structured content, with its text beside it', async ({ value }) => {
    expect(resultOf(await ask(doing(() => value).app))).toMatchObject({
      structuredContent: value,
      content: [text(JSON.stringify(value))],
    })
  })

  test('a whole result is taken as it is, and says who the server is beside its own _meta', async () => {
    const whole = {
      content: [text('a')],
      structuredContent: 5,
      isError: true,
      _meta: { 'example.com/id': 7, [META_SERVER_INFO]: { name: 'somebody else', version: '0' } },
    }
    expect(resultOf(await ask(doing(() => whole).app))).toEqual({
      resultType: 'complete',
      content: [text('a')],
      structuredContent: 5,
      isError: true,
      _meta: { 'example.com/id': 7, [META_SERVER_INFO]: { name: 'content', version: '1' } },
    })
  })

  test('of a whole result only what a result has is sent', async () => {
    const result = resultOf(await ask(doing(() => ({ content: [], resultType: 'complete', extra: 1 })).app))
    expect(result).toMatchObject({ resultType: 'complete' })
    expect(result).not.toHaveProperty('extra')
  })

  const circle: Record<string, unknown> = {}
  circle['self'] = circle
  test.each([
    { what: 'a BigInt inside', value: { id: 1n } },
    { what: 'a circle', value: circle },
  ])('$what is an error that the model reads, for JSON cannot hold it', async ({ value }) => {
    expect(resultOf(await ask(doing(() => value).app))).toMatchObject({ isError: true })
  })
})

describe('what a handler throws', () => {
  class PaymentError extends Error {
    override name = 'PaymentError'
    card = '4111 1111 1111 1111'
  }

  test.each([
    { what: 'an error', thrown: new Error('The disk is full.'), says: 'The disk is full.' },
    {
      what: 'one of a class, with properties',
      thrown: new PaymentError('Not enough money.'),
      says: 'Not enough money.',
    },
    { what: 'one with a cause', thrown: new Error('No plan.', { cause: new Error('hunter2') }), says: 'No plan.' },
    { what: 'one without a message', thrown: new TypeError(), says: 'The tool failed.' },
    {
      what: 'one whose message is none',
      thrown: Object.assign(new Error('x'), { message: undefined }),
      says: 'The tool failed.',
    },
    {
      what: 'one whose message is a BigInt',
      thrown: Object.assign(new Error('x'), { message: 5n }),
      says: 'The tool failed.',
    },
    { what: 'a text', thrown: 'Out of paper.', says: 'Out of paper.' },
    { what: 'an empty text', thrown: '', says: 'The tool failed.' },
    { what: 'nothing', thrown: undefined, says: 'The tool failed.' },
    { what: 'null', thrown: null, says: 'The tool failed.' },
    { what: 'an object', thrown: { message: 'hunter2' }, says: 'The tool failed.' },
    { what: 'a number', thrown: 7, says: 'The tool failed.' },
    { what: 'an aggregate', thrown: new AggregateError([new Error('hunter2')], 'Both failed.'), says: 'Both failed.' },
  ])('$what is a result that the model reads: its message and nothing else', async ({ thrown, says }) => {
    const threw = await ask(
      doing(() => {
        throw thrown
      }).app,
    )
    expect(resultOf(threw)).toEqual({
      resultType: 'complete',
      content: [text(says)],
      isError: true,
      _meta: expect.anything() as unknown,
    })
    expect(JSON.stringify(threw)).not.toMatch(/hunter2|4111|content\.test|node:internal/)
    expect(
      await ask(
        doing(async () => {
          throw thrown
        }).app,
      ),
    ).toMatchObject({ result: resultOf(threw) })
  })

  test('a step is told by what went wrong in it', async () => {
    const { app } = doing(async (_args: never, io: never) => {
      await (io as { step(key: string, run: () => void): Promise<void> }).step('ship', () => {
        throw new PaymentError('Not enough money.')
      })
    })
    expect(textOf(await ask(app))).toBe('Not enough money.')
  })

  test('a ProtocolError is that error on the wire, with its data', async () => {
    const thrown = new ProtocolError(-32602, 'No such order', { id: 7 })
    expect(
      errorOf(
        await ask(
          doing(() => {
            throw thrown
          }).app,
        ),
      ),
    ).toEqual({ code: -32602, message: 'No such order', data: { id: 7 } })
  })

  test('a ProtocolError whose data is no JSON is told without it', async () => {
    const thrown = new ProtocolError(-32602, 'No such order', { id: 7n })
    expect(
      errorOf(
        await ask(
          doing(() => {
            throw thrown
          }).app,
        ),
      ),
    ).toEqual({ code: -32602, message: 'No such order' })
  })
})

describe('what goes wrong inside', () => {
  test('a broken rule of the flow is -32603: the author reads which, and the log has the error', async () => {
    const { app, logged } = doing(async (_args: never, io: { random(key: string): number }) => io.random('a b'))
    const error = errorOf(await ask(app))
    expect(error).toMatchObject({ code: -32603, data: { code: 'KEY_INVALID' } })
    expect(logged.some(({ details }) => details?.['error'] instanceof FlowError)).toBe(true)
  })

  test('a pass that takes too long is -32603, and says how long it had', async () => {
    const { app } = doing(() => new Promise(() => {}), { timeoutMs: 20 })
    expect(errorOf(await ask(app))).toMatchObject({ code: -32603, data: { code: 'TIME_LIMIT' } })
  })

  const failing = {
    seal: (): string => {
      throw new Error('kms: the secret is hunter2')
    },
    open: (): string => {
      throw new Error('kms: the secret is hunter2')
    },
  }

  test('anything unforeseen is "Internal error", and the log has the rest', async () => {
    const { app, logged } = doing(
      async (_args: never, io: { confirm(key: string, message: string): Promise<boolean> }) =>
        io.confirm('sure', 'Sure?'),
      { codec: failing },
    )
    const response = await ask(app)
    expect(errorOf(response)).toEqual({ code: -32603, message: 'Internal error' })
    expect(logged).toMatchObject([{ details: { error: { message: 'kms: the secret is hunter2' } } }])
  })

  test('a state that cannot be opened is refused like any other, whatever the codec says', async () => {
    const { app } = doing(() => 'never', { codec: failing })
    const response = await send(app, call('do', {}, { requestState: 'x' }))
    expect(errorOf(response)).toEqual({ code: -32602, message: 'Invalid or expired requestState' })
  })

  test('a state that grows too large is told to the author by its size, and not by its content', async () => {
    const { app } = doing(
      async (
        _args: never,
        io: {
          step: (k: string, f: () => string) => Promise<string>
          confirm: (k: string, m: string) => Promise<boolean>
        },
      ) => {
        await io.step('load', () => 'hunter2'.repeat(200))
        return io.confirm('sure', 'Sure?')
      },
      { maxStateBytes: 1_000 },
    )
    const said = JSON.stringify(await ask(app))
    expect(said).toMatch(/the limit is|are allowed/)
    expect(said).not.toContain('hunter2')
  })
})

test('a declined question ends the call with a result that the model reads, unless the handler catches', async () => {
  const app = rally({ name: 'content', version: '1', logger: { warn() {}, error() {} } })
  const schema = z.object({ ok: z.boolean() })
  app.tool('plain', {}, async (_args, io) => String((await io.ask('ok', 'Ok?', schema)).ok))
  app.tool('caught', {}, async (_args, io) =>
    io.ask('ok', 'Ok?', schema).then(
      () => 'yes',
      () => 'Then not.',
    ),
  )
  for (const [name, says] of [
    ['plain', 'The user declined the question "ok". Nothing further was done.'],
    ['caught', 'Then not.'],
  ] as const) {
    const { state } = askedIn(await send(app, call(name)))
    const answers = { requestState: state, inputResponses: { ok: { action: 'decline' } } }
    expect(textOf(await send(app, call(name, {}, answers)))).toBe(says)
  }
  const { state } = askedIn(await send(app, call('plain')))
  const accepted = { requestState: state, inputResponses: { ok: accept({ ok: true }) } }
  expect(textOf(await send(app, call('plain', {}, accepted)))).toBe('true')
})
