import { describe, expect, test } from 'vitest'
import { checkAnswer } from './answering.ts'
import { ClientError } from '../errors.ts'
import type { ServerQuestion } from './question.ts'

const form: ServerQuestion = {
  kind: 'form',
  key: 'size',
  message: 'Which?',
  form: {
    type: 'object',
    properties: {
      size: { type: 'string', enum: ['small', 'large'] },
      count: { type: 'integer', minimum: 1, default: 1 },
      note: { type: 'string', format: 'email' },
    },
    required: ['size', 'count'],
  },
}
const visit: ServerQuestion = {
  kind: 'visit',
  key: 'page',
  message: 'Go.',
  url: 'https://a/',
  host: 'a',
  lookalike: false,
}
const sample: ServerQuestion = { kind: 'sample', key: 'model', messages: [], maxTokens: 1 }
const roots: ServerQuestion = { kind: 'roots', key: 'roots' }
const said = { role: 'assistant', content: { type: 'text', text: 'Hi' }, model: 'm' }

describe('an answer is sent', () => {
  test.each<[string, ServerQuestion, object, object]>([
    [
      'with the defaults of its form filled in',
      form,
      { action: 'accept', content: { size: 'small' } },
      { action: 'accept', content: { count: 1, size: 'small' } },
    ],
    [
      'with what was answered in place of defaults, and nothing that was not asked for',
      form,
      { action: 'accept', content: { size: 'large', count: 3, extra: 1 }, more: 1 },
      { action: 'accept', content: { count: 3, size: 'large' } },
    ],
    ['without content when declined', form, { action: 'decline', content: { size: 'small' } }, { action: 'decline' }],
    ['without content when cancelled', form, { action: 'cancel' }, { action: 'cancel' }],
    ['without content to a page', visit, { action: 'accept', content: {} }, { action: 'accept' }],
    ['as the model gave it', sample, { ...said, stopReason: 'endTurn' }, { ...said, stopReason: 'endTurn' }],
    ['with several blocks', sample, { ...said, content: [said.content] }, { ...said, content: [said.content] }],
    ['with roots', roots, { roots: [{ uri: 'file:///a' }] }, { roots: [{ uri: 'file:///a' }] }],
  ])('%s', (_how, question, answer, sent) => {
    expect(checkAnswer(question, answer)).toEqual(sent)
  })
})

describe('an answer that does not fit is an error that names what does not', () => {
  test.each<[string, ServerQuestion, unknown, string]>([
    [
      'a property that is missing',
      form,
      { action: 'accept' },
      'The answer to "size" does not match its question: size is required',
    ],
    [
      'every property that is wrong',
      form,
      { action: 'accept', content: { size: 'huge', count: 0, note: 'nobody' } },
      'size must be one of small, large; count must be at least 1; note must be an email address',
    ],
    [
      'a default that is overridden by nonsense',
      form,
      { action: 'accept', content: { size: 'small', count: null } },
      'count must be a number',
    ],
    ['content that is no object', form, { action: 'accept', content: [] }, 'its content must be an object'],
    ['an unknown action', form, { action: 'yes' }, 'its action must be'],
    ['an unknown action at a page', visit, {}, 'its action must be'],
    ['no object', form, 'small', 'it must be an object'],
    ['nothing', form, undefined, 'it must be an object'],
    ['no role', sample, { ...said, role: 'system' }, 'its role must be'],
    ['no model', sample, { ...said, model: undefined }, 'its model must be'],
    ['no content', sample, { ...said, content: 'Hi' }, 'its content must be'],
    ['what JSON cannot hold', sample, { ...said, extra: new Map() }, '$.extra is a Map'],
    ['roots that are no list', roots, { roots: {} }, 'its roots must be a list'],
    ['a root that is no folder', roots, { roots: [{ uri: 'https://a/' }] }, 'must have a uri that begins with file:'],
  ])('%s', (_what, question, answer, why) => {
    expect(() => checkAnswer(question, answer)).toThrow(ClientError)
    expect(() => checkAnswer(question, answer)).toThrow(why)
  })
})
