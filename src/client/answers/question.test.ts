import { describe, expect, test } from 'vitest'
import type { InputRequests } from '../../protocol/messages.ts'
import { ClientError } from '../errors.ts'
import { readQuestion, readQuestions } from './question.ts'

const read = (requests: object): unknown => readQuestions(requests as InputRequests)

const elicit = (params: object): object => ({ method: 'elicitation/create', params })

const asking = (count: number): object =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`q${i}`, { method: 'roots/list' }]))

describe('the questions of a round', () => {
  test('are forms, pages, samples and roots, under their keys', () => {
    const requestedSchema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: { name: { type: 'string', minLength: 1, pattern: '^(a+)+$' } },
      required: ['name'],
      additionalProperties: false,
    }
    const messages = [{ role: 'user', content: { type: 'text', text: 'Hi' } }]
    const questions = read({
      form: { method: 'elicitation/create', params: { mode: 'form', message: 'Name?', requestedSchema } },
      old: { method: 'elicitation/create', params: { message: 'Name?', requestedSchema } },
      page: { method: 'elicitation/create', params: { mode: 'url', message: 'Go.', url: 'https://a.example/x' } },
      model: { method: 'sampling/createMessage', params: { messages, maxTokens: 5, temperature: 1 } },
      roots: { method: 'roots/list' },
    })
    const form = { type: 'object', properties: { name: { type: 'string', minLength: 1 } }, required: ['name'] }
    expect(questions).toEqual([
      { kind: 'form', key: 'form', message: 'Name?', form },
      { kind: 'form', key: 'old', message: 'Name?', form },
      { kind: 'visit', key: 'page', message: 'Go.', url: 'https://a.example/x', host: 'a.example', lookalike: false },
      { kind: 'sample', key: 'model', messages, maxTokens: 5, temperature: 1 },
      { kind: 'roots', key: 'roots' },
    ])
  })

  test('may not pass for another kind, whatever a prompt holds', () => {
    const params = { kind: 'roots', key: 'other', messages: [], maxTokens: 1 }
    expect(read({ a: { method: 'sampling/createMessage', params } })).toMatchObject([{ kind: 'sample', key: 'a' }])
  })

  const message = 'Name?'

  test.each<[string, unknown, string]>([
    ['no object', 'text', 'it must be an object'],
    ['of an unknown method', { method: 'tasks/get' }, 'its method is unknown, got "tasks/get"'],
    ['without a method', {}, 'its method is unknown, got undefined'],
    ['of a method that is no text', { method: { toString: 1 } }, 'its method is unknown, got an object'],
    ['with params that are no object', { method: 'roots/list', params: [] }, 'its params must be an object'],
    [
      'without a message',
      elicit({ requestedSchema: { type: 'object', properties: {} } }),
      'its message must be a string',
    ],
    ['without a form', elicit({ message }), 'its requestedSchema must be an object'],
    ['of an unknown mode', elicit({ mode: 'voice', message }), 'its mode must be "form" or "url", got "voice"'],
    ['for an address that is none', elicit({ mode: 'url', message, url: 'javascript:1' }), 'got "javascript:"'],
    [
      'with a form that is not flat',
      elicit({ message, requestedSchema: { type: 'object', properties: { a: { type: 'object' } } } }),
      'property "a" is an object',
    ],
    [
      'with a form that refers elsewhere',
      elicit({ message, requestedSchema: { $ref: 'https://evil.example/schema.json' } }),
      'refers to "https://evil.example/schema.json"',
    ],
    [
      'with a form of endless choices',
      elicit({
        message,
        requestedSchema: {
          type: 'object',
          properties: { a: { enum: Array.from({ length: 6_000 }, (_, i) => `option ${i}`) } },
        },
      }),
      'its form has more than 5000 properties and items',
    ],
    [
      'without messages for the model',
      { method: 'sampling/createMessage', params: { maxTokens: 1 } },
      'its messages must be a list',
    ],
    [
      'with a very long reference',
      elicit({ message, requestedSchema: { $ref: `#/${'a/'.repeat(1_000_000)}` } }),
      'the form takes more than 50000 steps to resolve',
    ],
    ['without a limit for the model', { method: 'sampling/createMessage', params: { messages: [] } }, 'maxTokens'],
  ])('%s are refused', (_what, request, why) => {
    expect(() => read({ 'the key': request })).toThrow(ClientError)
    expect(() => read({ 'the key': request })).toThrow(`The server's question "the key" is not valid: `)
    expect(() => read({ 'the key': request })).toThrow(why)
  })

  test('are at most 100', () => {
    expect(read(asking(100))).toHaveLength(100)
    expect(() => read(asking(10_000))).toThrow('The server asks 10000 questions in one round, and the limit is 100.')
  })
})

const readVisit = (url: unknown): object =>
  readQuestion('page', { method: 'elicitation/create', params: { mode: 'url', message: 'Go.', url } })

test.each([
  ['https://example.com/a?b=c#d', 'example.com', false],
  ['http://127.0.0.1:3000/', '127.0.0.1:3000', false],
  ['https://xn--pple-43d.com/', 'xn--pple-43d.com', true],
  ['https://sub.xn--80ak6aa92e.com/', 'sub.xn--80ak6aa92e.com', true],
  ['https://\u0430pple.com/sign-in', 'xn--pple-43d.com', true],
  ['https://example.com/xn--path', 'example.com', false],
])('%s is an address at %s', (url, host, lookalike) => {
  expect(readVisit(url)).toEqual({ kind: 'visit', key: 'page', message: 'Go.', url, host, lookalike })
})

test.each([
  ['javascript:alert(1)', 'must begin with http: or https:, got "javascript:"'],
  ['file:///etc/passwd', 'must begin with http: or https:, got "file:"'],
  ['data:text/html,x', 'must begin with http: or https:, got "data:"'],
  ['ftp://example.com/', 'must begin with http: or https:, got "ftp:"'],
  ['https://accounts.example@evil.example/', 'must not contain a user name or password'],
  ['https://:secret@example.com/', 'must not contain a user name or password'],
  ['/relative', 'must be a URL'],
  ['', 'must be a URL'],
  [7, 'must be a URL'],
  [undefined, 'must be a URL'],
  [`https://example.com/${'a'.repeat(9_000)}`, 'must be a URL'],
])('nobody is sent to %j', (url, why) => {
  expect(() => readVisit(url)).toThrow(why)
})
