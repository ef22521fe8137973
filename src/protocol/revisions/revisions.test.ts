import { describe, expect, test } from 'vitest'
import { specValidator } from '../../../test/spec/validate.ts'
import type { InputRequest } from '../messages.ts'
import type { OlderRevision } from './older.ts'
import { negotiated, olderRevision } from './index.ts'

function revision(name: string): OlderRevision {
  const found = olderRevision(name)
  if (found === undefined) throw new Error(`There is no revision ${name}.`)
  return found
}

const latest = revision('2025-11-25')
const middle = revision('2025-06-18')
const first = revision('2025-03-26')
const ID = '0d8b7b1e-5c3f-4a30-9f4c-1d1f5a0c9f11'

function form(properties: object, required?: string[]): InputRequest {
  const requestedSchema = { type: 'object', properties, ...(required && { required }) }
  return { method: 'elicitation/create', params: { mode: 'form', message: 'Which?', requestedSchema } } as InputRequest
}

const page: InputRequest = {
  method: 'elicitation/create',
  params: { mode: 'url', message: 'Go there.', url: 'https://pages.example/' },
}

const sample: InputRequest = {
  method: 'sampling/createMessage',
  params: {
    messages: [
      { role: 'user', content: { type: 'text', text: 'One' } },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Two' },
          { type: 'text', text: 'Three' },
        ],
      },
    ],
    maxTokens: 5,
    includeContext: 'thisServer',
  },
}

const roots: InputRequest = { method: 'roots/list' }

test.each([
  ['2025-11-25', '2025-11-25'],
  ['2025-06-18', '2025-06-18'],
  ['2025-03-26', '2025-03-26'],
  ['2024-11-05', '2024-11-05'],
  ['2024-10-07', '2025-11-25'],
  ['2026-07-28', '2025-11-25'],
])('a client that proposes %s gets %s', (proposed, name) => {
  expect(negotiated(proposed).name).toBe(name)
})

describe('2025-11-25', () => {
  test.each([
    ['a form', form({ name: { type: 'string', default: 'Ada' } }), 'ElicitRequest'],
    ['a sample', sample, 'CreateMessageRequest'],
    ['the roots', roots, 'ListRootsRequest'],
  ])('asks for %s as it is asked for now', (_what, question, definition) => {
    const written = latest.question(question, ID)
    expect(written).toEqual(question)
    expect(specValidator(definition, '2025-11-25')({ jsonrpc: '2.0', id: 1, ...written })).toEqual([])
  })

  test('names a page to visit', () => {
    const written = latest.question(page, ID)
    expect(written).toEqual({ method: page.method, params: { ...page.params, elicitationId: ID } })
    expect(specValidator('ElicitRequest', '2025-11-25')({ jsonrpc: '2.0', id: 1, ...written })).toEqual([])
  })

  test('has structured content that is an object, and no other', () => {
    const result = { content: [] }
    const object = { ...result, structuredContent: { sum: 1 } }
    expect(latest.result('tools/call', object)).toEqual(object)
    for (const structuredContent of [[1], 'text', 7, null]) {
      expect(latest.result('tools/call', { ...result, structuredContent })).toEqual(result)
    }
  })

  test('lists output schemas of objects, and no others', () => {
    const tool = { name: 'add', title: 'Add', inputSchema: { type: 'object' }, icons: [] }
    const listed = (outputSchema: object): unknown =>
      latest.result('tools/list', { tools: [{ ...tool, outputSchema }] })
    expect(listed({ type: 'object' })).toEqual({ tools: [{ ...tool, outputSchema: { type: 'object' } }] })
    expect(listed({ type: 'array' })).toEqual({ tools: [tool] })
    expect(listed({ anyOf: [] })).toEqual({ tools: [tool] })
  })
})

describe('2025-06-18', () => {
  test('writes a form without a mode, with names of options and with defaults for switches alone', () => {
    const question = form(
      {
        name: { type: 'string', title: 'Name', minLength: 1, default: 'Ada' },
        age: { type: 'integer', minimum: 0, default: 3 },
        sure: { type: 'boolean', default: true },
        plain: { type: 'string', enum: ['a', 'b'], default: 'a' },
        titled: { type: 'string', oneOf: [{ const: 'a', title: 'A' }], default: 'a' },
        older: { type: 'string', enum: ['a'], enumNames: ['A'] },
      },
      ['name'],
    )
    expect(middle.question(question, ID)).toEqual({
      method: 'elicitation/create',
      params: {
        message: 'Which?',
        requestedSchema: {
          type: 'object',
          properties: {
            name: { type: 'string', title: 'Name', minLength: 1 },
            age: { type: 'integer', minimum: 0 },
            sure: { type: 'boolean', default: true },
            plain: { type: 'string', enum: ['a', 'b'] },
            titled: { type: 'string', enum: ['a'], enumNames: ['A'] },
            older: { type: 'string', enum: ['a'], enumNames: ['A'] },
          },
          required: ['name'],
        },
      },
    })
  })

  test.each([
    ['a choice of several', form({ tags: { type: 'array', items: { type: 'string', enum: ['a'] } } }), /"tags"/],
    ['a page to visit', page, /URL/],
  ])('has no words for %s', (_what, question, why) => {
    expect(middle.question(question, ID)).toEqual({ unsupported: expect.stringMatching(why) })
  })

  test('has one block of content in each message of a sample', () => {
    const texts = ['One', 'Two', 'Three']
    const messages = texts.map((text) => ({ role: 'user', content: { type: 'text', text } }))
    expect(middle.question(sample, ID)).toMatchObject({ params: { messages } })
  })

  test.each(['tools', 'prompts', 'resources'])('lists %s without icons', (list) => {
    const entry = { name: 'it', title: 'It' }
    expect(middle.result(`${list}/list`, { [list]: [{ ...entry, icons: [] }] })).toEqual({ [list]: [entry] })
  })

  test('names the server without what came later', () => {
    const info = { name: 'a', version: '1', title: 'A', description: 'b', websiteUrl: 'https://a.example' }
    expect(middle.serverInfo(info)).toEqual({ name: 'a', version: '1', title: 'A' })
  })
})

describe('2025-03-26', () => {
  test.each([
    ['a form', form({ name: { type: 'string' } })],
    ['a page to visit', page],
  ])('has no words for %s', (_what, question) => {
    expect(first.question(question, ID)).toEqual({ unsupported: 'it has no elicitation' })
  })

  test('asks for a sample and for the roots', () => {
    expect(first.question(roots, ID)).toEqual(roots)
    expect(first.question(sample, ID)).toEqual(middle.question(sample, ID))
  })

  const titled = { name: 'it', title: 'It', description: 'What it is', icons: [], _meta: {} }
  test.each([
    [
      'tools/list',
      { tools: [{ ...titled, inputSchema: {}, outputSchema: {}, annotations: {} }] },
      { tools: [{ name: 'it', description: 'What it is', inputSchema: {}, annotations: {} }] },
    ],
    [
      'prompts/list',
      { prompts: [{ ...titled, arguments: [{ name: 'a', title: 'A', required: true }] }], nextCursor: 'c' },
      {
        prompts: [{ name: 'it', description: 'What it is', arguments: [{ name: 'a', required: true }] }],
        nextCursor: 'c',
      },
    ],
    [
      'resources/list',
      { resources: [{ ...titled, uri: 'a://b', size: 3, mimeType: 'text/plain' }] },
      { resources: [{ uri: 'a://b', size: 3, name: 'it', description: 'What it is', mimeType: 'text/plain' }] },
    ],
    [
      'resources/templates/list',
      { resourceTemplates: [{ ...titled, uriTemplate: 'a://{b}' }] },
      { resourceTemplates: [{ uriTemplate: 'a://{b}', name: 'it', description: 'What it is' }] },
    ],
    [
      'tools/call',
      { content: [{ type: 'resource_link', uri: 'a://b', name: 'it' }], structuredContent: {}, isError: true },
      { content: [{ type: 'text', text: 'it: a://b' }], isError: true },
    ],
    [
      'prompts/get',
      {
        messages: [{ role: 'user', content: { type: 'resource_link', uri: 'a://b', name: 'it', description: 'That' } }],
      },
      { messages: [{ role: 'user', content: { type: 'text', text: 'it: a://b\nThat' } }] },
    ],
  ])('%s has nothing of what came later', (method, result, older) => {
    expect(first.result(method, result)).toEqual(older)
  })
})

describe('2024-11-05', () => {
  const earliest = revision('2024-11-05')
  const audio = { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' }
  const attached = { type: 'resource', resource: { uri: 'attachment:audio', mimeType: 'audio/wav', blob: 'AAAA' } }

  test('asks as 2025-03-26 does, and has no audio to ask with', () => {
    expect(earliest.question(roots, ID)).toEqual(roots)
    expect(earliest.question(sample, ID)).toEqual(first.question(sample, ID))
    expect(earliest.question(page, ID)).toEqual({ unsupported: 'it has no elicitation' })
    const heard = {
      method: 'sampling/createMessage',
      params: { messages: [{ role: 'user', content: audio }], maxTokens: 5 },
    }
    expect(earliest.question(heard as InputRequest, ID)).toEqual({ unsupported: 'its sampling has no audio' })
  })

  test.each([
    [
      'tools/list',
      { tools: [{ name: 'it', title: 'It', inputSchema: {}, annotations: {} }] },
      { tools: [{ name: 'it', inputSchema: {} }] },
    ],
    ['tools/call', { content: [audio], structuredContent: {} }, { content: [attached] }],
    [
      'prompts/get',
      { messages: [{ role: 'user', content: audio }] },
      { messages: [{ role: 'user', content: attached }] },
    ],
  ])('%s has nothing of what came later', (method, result, older) => {
    expect(earliest.result(method, result)).toEqual(older)
  })
})
