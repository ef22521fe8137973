import { expect, test } from 'vitest'
import type { ServerQuestion } from '../client/answers/question.ts'
import { answeredBy, answerFrom, exampleOf } from './answers.ts'

const form: ServerQuestion = {
  kind: 'form',
  key: 'it',
  message: 'Which?',
  form: {
    type: 'object',
    properties: {
      action: { type: 'string', enum: ['accept', 'refuse'] },
      count: { type: 'integer', minimum: 2 },
      sure: { type: 'boolean', default: false },
      name: { type: 'string' },
      days: { type: 'array', items: { anyOf: [{ const: 'mon', title: 'Monday' }] } },
      colour: { type: 'string', oneOf: [{ const: 'red', title: 'Red' }] },
    },
  },
}
const visit: ServerQuestion = {
  kind: 'visit',
  key: 'it',
  message: 'Go.',
  url: 'https://a.b/',
  host: 'a.b',
  lookalike: false,
}
const sample: ServerQuestion = { kind: 'sample', key: 'it', messages: [], maxTokens: 1 }
const roots: ServerQuestion = { kind: 'roots', key: 'it' }

const said = { role: 'assistant', content: { type: 'text', text: 'Hello.' } }

test.each([
  { question: form, answer: { count: 2 }, sent: { action: 'accept', content: { count: 2 } } },
  { question: form, answer: 'decline', sent: { action: 'decline' } },
  { question: form, answer: { action: 'cancel' }, sent: { action: 'cancel' } },
  {
    question: form,
    answer: { action: 'accept', content: { count: 2 } },
    sent: { action: 'accept', content: { count: 2 } },
  },
  // A form may have a field of that name.
  {
    question: form,
    answer: { action: 'accept', count: 2 },
    sent: { action: 'accept', content: { action: 'accept', count: 2 } },
  },
  { question: form, answer: { action: 'refuse' }, sent: { action: 'accept', content: { action: 'refuse' } } },
  { question: visit, answer: 'accept', sent: { action: 'accept' } },
  { question: sample, answer: said, sent: { model: 'answers', ...said } },
  { question: sample, answer: { ...said, model: 'm' }, sent: { ...said, model: 'm' } },
  { question: roots, answer: { roots: [] }, sent: { roots: [] } },
])('$answer to a question of kind $question.kind is sent as $sent', ({ question, answer, sent }) => {
  expect(answerFrom(new Map([['it', answer]]), question)).toEqual(sent)
})

test('a question that the file does not have is not answered', () => {
  expect(answerFrom(new Map([['constructor', 'accept']]), form)).toBeUndefined()
})

test('models and roots are declared where the file answers for them', () => {
  expect(answeredBy(new Map<string, unknown>([['a', { b: 1 }]]))).toEqual([])
  expect(answeredBy(new Map<string, unknown>(Object.entries({ a: said, b: { roots: [] } })))).toEqual([
    'sampling',
    'roots',
  ])
})

test.each([
  {
    question: form,
    example: '"it": {"action":"accept","count":2,"sure":false,"name":"...","days":["mon"],"colour":"red"}',
  },
  { question: visit, example: '"it": "accept"' },
  { question: sample, example: '"it": {"role":"assistant","content":{"type":"text","text":"..."}}' },
  { question: roots, example: '"it": {"roots":[{"uri":"file:///..."}]}' },
])('an answer to a question of kind $question.kind looks like $example', ({ question, example }) => {
  expect(exampleOf(question)).toBe(example)
})
