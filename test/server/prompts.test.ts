import type { ContentBlock, PromptMessage, PromptReturn, Rally } from 'mcp-rally'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { META_SERVER_INFO } from '../../src/protocol/revisions/2026-07-28.ts'
import { errorOf, request, resultOf } from '../wire/messages.ts'
import { makeApp, prompt, responseOf } from './messages.ts'

const PIXEL = 'iVBORw0KGgo='

const BLOCKS: Record<string, ContentBlock> = {
  text: { type: 'text', text: 'Hi', annotations: { audience: ['user'], priority: 0.5 }, _meta: { 'x.y/z': 1 } },
  image: { type: 'image', data: PIXEL, mimeType: 'image/png' },
  audio: { type: 'audio', data: PIXEL, mimeType: 'audio/wav' },
  embedded: { type: 'resource', resource: { uri: 'a://b', text: 'c', mimeType: 'text/plain' } },
  'embedded bytes': { type: 'resource', resource: { uri: 'a://b', blob: PIXEL } },
  linked: {
    type: 'resource_link',
    uri: 'a://b',
    name: 'b',
    size: 3,
    icons: [{ src: 'https://example.com/i.png', sizes: ['48x48'], theme: 'dark' }],
    annotations: { lastModified: '2026-07-28T00:00:00Z' },
  },
}

const hi = (): string => 'Hi'
const user = (content: ContentBlock): PromptMessage => ({ role: 'user', content })

function saying(said: unknown): Rally {
  const { app } = makeApp()
  return app.prompt('say', {}, () => said as PromptReturn)
}

const got = async (said: unknown): Promise<Record<string, unknown>> =>
  resultOf(await responseOf(saying(said), prompt('say')))

describe('what a prompt may return', () => {
  test('a text is one message of the user', async () => {
    expect(await got('Please review.')).toEqual({
      resultType: 'complete',
      messages: [user({ type: 'text', text: 'Please review.' })],
      _meta: { [META_SERVER_INFO]: { name: 'whole', version: '1.0.0' } },
    })
  })

  test.each(Object.entries(BLOCKS))('a block of content is one message of the user: %s', async (_kind, block) => {
    expect((await got(block))['messages']).toEqual([user(block)])
  })

  test('a list of messages is itself', async () => {
    const messages = Object.values(BLOCKS).map((content, index) => ({
      role: index % 2 === 0 ? 'user' : 'assistant',
      content,
    }))
    expect((await got(messages))['messages']).toEqual(messages)
    expect((await got([]))['messages']).toEqual([])
  })

  test('a whole result has a description and a _meta of its own, beside who the server is', async () => {
    const messages = [user({ type: 'text', text: 'Hi' })]
    expect(await got({ messages, description: 'Greets', _meta: { 'x.y/z': 1 } })).toEqual({
      resultType: 'complete',
      messages,
      description: 'Greets',
      _meta: { 'x.y/z': 1, [META_SERVER_INFO]: { name: 'whole', version: '1.0.0' } },
    })
  })

  test.each([
    ['nothing', undefined],
    ['null', null],
    ['a number', 7],
    ['an object without messages', { description: 'Greets' }],
    ['a message of nobody', [{ role: 'system', content: { type: 'text', text: 'Hi' } }]],
    ['a message without a block', { messages: [{ role: 'user', content: 'Hi' }] }],
  ])('%s is an error that says what to return', async (_what, said) => {
    expect(errorOf(await responseOf(saying(said), prompt('say')))).toEqual({
      code: -32603,
      message:
        'The prompt returned no messages. Return a text, a content block, a list of { role, content }, or { messages }.',
    })
  })

  test('what JSON cannot hold is an error and no broken message', async () => {
    const said = { messages: [user({ type: 'text', text: 'Hi', _meta: { n: 1n } })] }
    expect(errorOf(await responseOf(saying(said), prompt('say')))).toMatchObject({
      code: -32603,
      message: expect.stringContaining('BigInt'),
    })
  })
})

describe('the arguments of a prompt', () => {
  const { app } = makeApp()
  app.prompt(
    'review',
    { arguments: z.object({ code: z.string(), lines: z.string().transform(Number).optional() }) },
    ({ code, lines }) => `${code}, ${typeof lines} ${lines}`,
  )
  app.prompt('plain', {}, () => 'Hi')

  const textOf = async (args: object): Promise<unknown> =>
    resultOf(await responseOf(app, prompt('review', args)))['messages']

  test('arrive as their schema made them', async () => {
    expect(await textOf({ code: 'x', lines: '12' })).toMatchObject([{ content: { text: 'x, number 12' } }])
    expect(await textOf({ code: 'x' })).toMatchObject([{ content: { text: 'x, undefined undefined' } }])
  })

  test.each([
    ['are missing', prompt('review'), 'Invalid arguments for review: code: '],
    ['are no strings', prompt('review', { code: 1 }), 'the arguments of a prompt must be strings'],
    ['are a list', request('prompts/get', { name: 'review', arguments: ['x'] }), 'arguments must be an object, '],
    ['are not taken', prompt('plain', { odd: 'x' }), 'Invalid arguments for plain: '],
  ])('are refused as invalid params where they %s', async (_why, message, said) => {
    const error = errorOf(await responseOf(app, message))
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining(said) })
  })

  test.each([
    ['unknown', prompt('nothing'), 'Unknown prompt: nothing'],
    ['an inherited property', prompt('constructor'), 'Unknown prompt: constructor'],
    ['missing', request('prompts/get'), 'name must be a string'],
    ['no string', request('prompts/get', { name: 7 }), 'name must be a string'],
  ])('a name that is %s is an invalid param', async (_why, message, said) => {
    expect(errorOf(await responseOf(app, message))).toEqual({ code: -32602, message: said })
  })
})

describe('a prompt as it is listed', () => {
  test('has its arguments in order, and all that its options say of it', async () => {
    const { app } = makeApp()
    app.prompt(
      'review',
      {
        title: 'Review',
        description: 'Reviews code',
        icons: [{ src: 'https://example.com/i.svg', mimeType: 'image/svg+xml' }],
        _meta: { 'x.y/z': 1 },
        arguments: z.object({
          code: z.string().meta({ title: 'Code', description: 'What to review' }),
          tone: z.enum(['kind', 'harsh']).optional(),
        }),
        asks: { scope: z.object({ all: z.boolean() }) },
        version: '2',
      },
      () => 'Hi',
    )
    app.prompt('plain', {}, () => 'Hi')
    expect(resultOf(await responseOf(app, request('prompts/list')))['prompts']).toEqual([
      {
        name: 'review',
        title: 'Review',
        description: 'Reviews code',
        icons: [{ src: 'https://example.com/i.svg', mimeType: 'image/svg+xml' }],
        _meta: { 'x.y/z': 1 },
        arguments: [{ name: 'code', title: 'Code', description: 'What to review', required: true }, { name: 'tone' }],
      },
      { name: 'plain' },
    ])
  })
})

describe('registering a prompt', () => {
  const { app } = makeApp()

  test.each([
    ['has no name', () => app.prompt('', {}, hi), 'A prompt needs a name'],
    ['has no options', () => app.prompt('x', hi as never, undefined as never), 'Prompt "x" needs'],
    ['has no handler', () => app.prompt('x', {}, undefined as never), 'Prompt "x": the handler must be a function'],
    [
      'has arguments that are no object',
      () => app.prompt('x', { arguments: z.string() }, hi),
      'Prompt "x": `arguments` must be an object schema',
    ],
    [
      'has an argument that is no string',
      () => app.prompt('x', { arguments: z.object({ n: z.number() }) }, hi),
      'Prompt "x": the argument "n" must be a string',
    ],
    [
      'asks what no form can hold',
      () => app.prompt('x', { asks: { deep: z.object({ a: z.object({}) }) } }, hi),
      'Prompt "x", asks.deep',
    ],
    [
      'completes an argument that it does not have',
      () => app.prompt('x', { arguments: z.object({ a: z.string() }), complete: { b: ['c'] } }, hi),
      'Prompt "x": `complete` names "b", which does not exist. It has: a.',
    ],
  ])('is an error at once where it %s', (_why, register, said) => {
    expect(register).toThrow(said)
  })

  test('is an error where the name is taken', () => {
    app.prompt('twice', {}, hi)
    expect(() => app.prompt('twice', {}, hi)).toThrow('The prompt "twice" is registered already.')
  })
})
