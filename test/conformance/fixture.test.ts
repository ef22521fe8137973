// The suite looks at little of what its scenarios describe. The rest, to the letter, is here.
import { send } from 'mcp-rally'
import { describe, expect, test } from 'vitest'
import type { WireRequest } from '../wire/messages.ts'
import { accept, askedIn, call, request, resultOf, textOf } from '../wire/messages.ts'
import { conformanceApp } from './fixture/app.mjs'

const app = conformanceApp()

const ask = (message: WireRequest): ReturnType<typeof send> => send(app, message)

test.each([
  ['test_simple_text', {}, 'This is a simple text response for testing.'],
  ['test_error_handling', {}, 'This tool intentionally returns an error for testing'],
  ['json_schema_2020_12_tool', { name: 'Ada', contactMethod: 'phone', phone: '1' }, 'Ada by phone'],
  ['test_custom_headers', { region: 'eu', priority: 1, urgent: false }, 'In eu'],
  ['test_tool_with_logging', {}, 'A log was written.'],
  ['test_reconnection', {}, 'It took a while.'],
])('%s gives its text', async (name, args, text) => {
  expect(textOf(await ask(call(name, args)))).toBe(text)
})

test('The tool with a schema of composed and conditional parts holds arguments to all of them', async () => {
  const wrong = await ask(call('json_schema_2020_12_tool', { name: 'Ada', contactMethod: 'phone', email: 'a@b.c' }))
  expect(resultOf(wrong)).toMatchObject({ isError: true })
})

const sampled = (text: string): object => ({ role: 'assistant', content: { type: 'text', text }, model: 'model' })
const roots = { roots: [{ uri: 'file:///one' }, { uri: 'file:///two' }] }

describe('A tool of two rounds', () => {
  test.each([
    ['test_input_required_result_elicitation', { user_name: accept({ name: 'Ada' }) }, 'Hello, Ada!'],
    ['test_input_required_result_sampling', { capital_question: sampled('Paris') }, 'Paris'],
    ['test_input_required_result_list_roots', { client_roots: roots }, 'file:///one\nfile:///two'],
    ['test_input_required_result_request_state', { confirm: accept({ ok: true }) }, 'state-ok: confirm is true'],
    ['test_input_required_result_tampered_state', { confirm: accept({ ok: false }) }, 'Not confirmed.'],
    ['test_streaming_elicitation', { confirm: accept({ confirm: true }) }, 'Went on.'],
    [
      'test_input_required_result_multiple_inputs',
      {
        'needs:user>user_name': accept({ name: 'Ada' }),
        'needs:greeting>greeting': sampled('Welcome!'),
        'needs:roots>client_roots': roots,
      },
      'Welcome! Ada has 2 root(s).',
    ],
    [
      'test_input_required_result_capabilities',
      { user_name: accept({ name: 'Ada' }), greeting: sampled('Welcome,') },
      'Welcome, Ada',
    ],
  ])('%s asks for all at once, then gives its text', async (name, inputResponses, text) => {
    const { state: requestState, messages } = askedIn(await ask(call(name)))
    expect(Object.keys(messages).toSorted()).toEqual(Object.keys(inputResponses).toSorted())
    expect(textOf(await ask(call(name, {}, { inputResponses, requestState })))).toBe(text)
  })
})

test('The tool of three rounds remembers by hand what the first one was answered', async () => {
  const name = 'test_input_required_result_multi_round'
  const first = askedIn(await ask(call(name)))
  expect(first.messages).toEqual({ step1: 'Step 1: What is your name?' })
  const inputResponses = { step1: accept({ name: 'Ada' }) }
  const second = askedIn(await ask(call(name, {}, { inputResponses, requestState: first.state })))
  expect(second.messages).toEqual({ step2: 'Step 2: What is your favorite color?' })
  const last = { inputResponses: { step2: accept({ color: 'blue' }) }, requestState: second.state }
  expect(textOf(await ask(call(name, {}, last)))).toBe('Ada likes blue.')
})

test.each([
  ['test_simple_prompt', {}, 'This is a simple prompt for testing.'],
  ['test_prompt_with_arguments', { arg1: 'hello', arg2: 'world' }, "Prompt with arguments: arg1='hello', arg2='world'"],
])('%s gives one message of the user', async (name, args, text) => {
  expect(resultOf(await ask(request('prompts/get', { name, arguments: args })))['messages']).toEqual([
    { role: 'user', content: { type: 'text', text } },
  ])
})

test('A prompt asks first, and then is made of the answer', async () => {
  const name = 'test_input_required_result_prompt'
  const { state: requestState } = askedIn(await ask(request('prompts/get', { name })))
  const inputResponses = { user_context: accept({ context: 'the moon' }) }
  expect(resultOf(await ask(request('prompts/get', { name, inputResponses, requestState })))['messages']).toEqual([
    { role: 'user', content: { type: 'text', text: 'Use this context: the moon' } },
  ])
})

test.each([
  ['test://static-text', 'text/plain', 'This is the content of the static text resource.'],
  ['test://template/123/data', 'application/json', '{"id":"123","templateTest":true,"data":"Data for ID: 123"}'],
])('%s is read as it is', async (uri, mimeType, text) => {
  expect(resultOf(await ask(request('resources/read', { uri })))['contents']).toEqual([{ uri, mimeType, text }])
})
