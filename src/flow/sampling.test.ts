import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { EXAMPLES, specValidator } from '../../test/spec/validate.ts'
import type {
  CreateMessageRequestParams,
  CreateMessageResult,
  SamplingMessage,
  SamplingMessageContentBlock,
  Tool,
} from '../protocol/messages.ts'
import { decline } from '../testing.ts'
import { Rounds } from '../testing/rounds.ts'
import type { Io } from './io.ts'
import type { Outcome } from './carrier.ts'
import type { Capability } from './question.ts'

const HELLO: SamplingMessage = { role: 'user', content: { type: 'text', text: 'Hello?' } }
const WEATHER: Tool = { name: 'weather', inputSchema: { type: 'object' } }
const SAID: CreateMessageResult = { role: 'assistant', content: { type: 'text', text: 'Hello.' }, model: 'm' }

describe('io.sample', () => {
  test.each(examplesOf('CreateMessageRequestParams'))(
    'puts the official example $file on the wire as it is',
    async ({ message }) => {
      const outcome = await new Rounds().next((io) => io.sample('s', message))
      const text = outcome.kind === 'asks' ? outcome.questions.get('s') : undefined
      expect(JSON.parse(text ?? '{}')).toEqual({ method: 'sampling/createMessage', params: message })
      expect(specValidator('CreateMessageRequest')(JSON.parse(text ?? '{}'))).toEqual([])
    },
  )

  test.each(examplesOf('CreateMessageResult'))(
    'takes the official example $file for an answer, live and replayed',
    async ({ message }) => {
      const rounds = new Rounds()
      const seen: unknown[] = []
      const handler = async (io: Io): Promise<void> => {
        seen.push(await io.sample('s', { messages: [HELLO], maxTokens: 9, tools: [WEATHER] }))
        await io.confirm('last', 'Last?')
      }
      await rounds.next(handler)
      await rounds.next(handler, { s: message })
      await rounds.next(handler)
      expect(seen).toEqual([message, message])
    },
  )

  test('keeps what the revision names of an answer, and nothing else', async () => {
    const meta = { 'example.com/cached': true }
    const outcome = await new Rounds().next((io) => io.sample('s', { messages: [HELLO], maxTokens: 9 }), {
      s: { ...SAID, stopReason: 'endTurn', _meta: meta, resultType: 'complete', extra: 'x'.repeat(1_000) },
    })
    expect(outcome).toEqual({ kind: 'done', value: { ...SAID, stopReason: 'endTurn', _meta: meta } })
  })

  test('asks what it was given, whatever the author does with the messages later', async () => {
    const messages = [HELLO]
    const outcome = await new Rounds().next((io) => {
      const said = io.sample('s', { messages, maxTokens: 9 })
      messages.push(HELLO)
      return said
    })
    const text = outcome.kind === 'asks' ? outcome.questions.get('s') : undefined
    expect(JSON.parse(text ?? '{}')).toMatchObject({ params: { messages: [HELLO] } })
  })
})

describe('a sample needs what it uses', () => {
  const plain = { messages: [HELLO], maxTokens: 9 }

  test.each<{ name: string; params: CreateMessageRequestParams; has: Capability[]; lacks: object | undefined }>([
    { name: 'a prompt', params: plain, has: [], lacks: { sampling: {} } },
    { name: 'a prompt', params: plain, has: ['sampling'], lacks: undefined },
    { name: 'tools', params: { ...plain, tools: [WEATHER] }, has: ['sampling'], lacks: { sampling: { tools: {} } } },
    { name: 'tools', params: { ...plain, tools: [WEATHER] }, has: [], lacks: { sampling: { tools: {} } } },
    { name: 'tools', params: { ...plain, tools: [WEATHER] }, has: ['sampling', 'sampling.tools'], lacks: undefined },
    {
      name: 'a choice of tools',
      params: { ...plain, toolChoice: { mode: 'none' } },
      has: ['sampling'],
      lacks: { sampling: { tools: {} } },
    },
    {
      name: 'tool results among its messages',
      params: { messages: [HELLO, uses('1'), results('1')], maxTokens: 9 },
      has: ['sampling'],
      lacks: { sampling: { tools: {} } },
    },
    {
      name: 'context',
      params: { ...plain, includeContext: 'thisServer' },
      has: ['sampling'],
      lacks: { sampling: { context: {} } },
    },
    {
      name: 'context',
      params: { ...plain, includeContext: 'allServers' },
      has: ['sampling', 'sampling.context'],
      lacks: undefined,
    },
    { name: 'no context', params: { ...plain, includeContext: 'none' }, has: ['sampling'], lacks: undefined },
  ])('$name, for a client with $has, lacks $lacks', async ({ params, has, lacks }) => {
    const outcome = await new Rounds({ capabilities: has }).next((io) => io.sample('s', params))
    if (lacks === undefined) expect(outcome).toMatchObject({ kind: 'asks' })
    else expect(outcome).toMatchObject({ error: { rpcCode: -32021, data: { requiredCapabilities: lacks } } })
  })
})

describe('a prompt that breaks the rules is a mistake of the author, and says what to do', () => {
  test.each<{ name: string; messages: unknown[]; why: string }>([
    {
      name: 'a use without its result',
      messages: [HELLO, uses('1', '2'), results('1')],
      why: 'messages[2] must be a user message with nothing but a tool result for each use of a tool before it; missing: 2',
    },
    {
      name: 'a use that is followed by something else',
      messages: [HELLO, uses('1'), HELLO, results('1')],
      why: 'messages[2] must be a user message with nothing but a tool result for each use of a tool before it; missing: 1',
    },
    {
      name: 'a use at the end',
      messages: [HELLO, uses('1', '2')],
      why: 'after its last message there must be a user message with nothing but a tool result for each use of a tool before it; missing: 1, 2',
    },
    {
      name: 'a result mixed with text',
      messages: [HELLO, uses('1'), { role: 'user', content: [result('1'), { type: 'text', text: 'Here.' }] }],
      why: 'messages[2] has tool results, which belong into a user message of nothing else',
    },
    {
      name: 'a result from the assistant',
      messages: [HELLO, uses('1'), { role: 'assistant', content: [result('1')] }],
      why: 'messages[2] has tool results, which belong into a user message of nothing else',
    },
    {
      name: 'a result that nobody asked for',
      messages: [HELLO, uses('1'), results('1', '2')],
      why: 'messages[2] has a tool result for 2, which the message before it does not use',
    },
    {
      name: 'a result out of nowhere',
      messages: [results('1')],
      why: 'messages[0] has a tool result for 1, which the message before it does not use',
    },
    {
      name: 'a result given twice',
      messages: [HELLO, uses('1'), results('1', '1')],
      why: 'messages[2] has two tool results under one id',
    },
    {
      name: 'two uses under one id',
      messages: [HELLO, uses('1', '1'), results('1')],
      why: 'messages[1] uses two tools under one id',
    },
    {
      name: 'a use by the user',
      messages: [{ ...uses('1'), role: 'user' }, results('1')],
      why: 'messages[0] uses tools, which only the assistant does',
    },
    { name: 'no role', messages: [{ content: [] }], why: 'messages[0].role must be "user" or "assistant"' },
    {
      name: 'no content',
      messages: [{ role: 'user' }],
      why: 'messages[0].content must be a content block or a list of them',
    },
    {
      name: 'a block of a kind that is not for models',
      messages: [{ role: 'user', content: [{ type: 'resource_link', uri: 'a:b', name: 'b' }] }],
      why: 'messages[0].content must be a content block or a list of them',
    },
  ])('$name', async ({ messages, why }) => {
    const params = { messages: messages as SamplingMessage[], maxTokens: 9, tools: [WEATHER] }
    const outcome = await new Rounds().next((io) => io.sample('s', params).catch(() => 'caught'))
    expect(outcome).toMatchObject({
      kind: 'failed',
      error: { code: 'QUESTION_INVALID', message: `The question "s" cannot be asked: ${why}.` },
    })
  })

  test.each<{ params: object; why: string }>([
    { params: { maxTokens: 9 }, why: 'its messages must be a list' },
    { params: { messages: [] }, why: 'its maxTokens must be a whole number above 0' },
    { params: { messages: [], maxTokens: 0 }, why: 'its maxTokens must be a whole number above 0' },
    { params: { messages: [], maxTokens: 1.5 }, why: 'its maxTokens must be a whole number above 0' },
    {
      params: { messages: [], maxTokens: 9, modelPreferences: { speedPriority: 2 } },
      why: 'its modelPreferences.speedPriority must be a number from 0 to 1',
    },
  ])('$params', async ({ params, why }) => {
    const outcome = await new Rounds().next((io) => io.sample('s', params as CreateMessageRequestParams))
    expect(outcome).toMatchObject({ error: { code: 'QUESTION_INVALID', message: expect.stringContaining(why) } })
  })

  test('what JSON would lose', async () => {
    const metadata = { at: new Date(0) } as unknown as NonNullable<CreateMessageRequestParams['metadata']>
    const outcome = await new Rounds().next((io) => io.sample('s', { messages: [], maxTokens: 9, metadata }))
    expect(outcome).toMatchObject({ error: { code: 'NOT_JSON', message: expect.stringContaining('$.metadata.at') } })
  })

  test('a conversation in which every use has its result is asked', async () => {
    const messages = [HELLO, uses('1', '2'), results('2', '1'), uses('3'), { ...results('3'), content: result('3') }]
    const outcome = await new Rounds().next((io) => io.sample('s', { messages, maxTokens: 9 }))
    expect(outcome).toMatchObject({ kind: 'asks' })
  })
})

describe('an answer to a sample that is not well-formed is asked again', () => {
  const tooled = { messages: [HELLO], maxTokens: 9, tools: [WEATHER] }

  test.each<{ name: string; answer: object; params?: CreateMessageRequestParams }>([
    { name: 'what a user does with a form', answer: decline() },
    { name: 'no role', answer: { ...SAID, role: 'system' } },
    { name: 'no model', answer: { ...SAID, model: undefined } },
    { name: 'no content', answer: { ...SAID, content: undefined } },
    { name: 'content that is text', answer: { ...SAID, content: 'Hello.' } },
    { name: 'text without text', answer: { ...SAID, content: [{ type: 'text' }] } },
    { name: 'an image without its type', answer: { ...SAID, content: [{ type: 'image', data: 'AA==' }] } },
    { name: 'a block of an unknown type', answer: { ...SAID, content: { type: 'video', data: 'AA==' } } },
    { name: 'a strange reason to stop', answer: { ...SAID, stopReason: 7 } },
    { name: 'a use without an id', answer: { ...SAID, content: { type: 'tool_use', name: 'weather', input: {} } } },
    { name: 'a use without a name', answer: { ...SAID, content: { type: 'tool_use', id: '1', input: {} } } },
    { name: 'a use with a list for arguments', answer: { ...SAID, content: { ...use('1'), input: [] } } },
    { name: 'two uses under one id', answer: { ...SAID, content: [use('1'), use('1')] } },
    { name: 'a use by the user', answer: { ...SAID, role: 'user', content: use('1') } },
    { name: 'a tool result', answer: { ...SAID, content: result('1') } },
    { name: 'a stop to use tools, and no use', answer: { ...SAID, stopReason: 'toolUse' } },
    {
      name: 'a use where no tools were given',
      answer: { ...SAID, content: use('1') },
      params: { messages: [], maxTokens: 9 },
    },
    {
      name: 'a use where none was allowed',
      answer: { ...SAID, content: use('1') },
      params: { ...tooled, toolChoice: { mode: 'none' } },
    },
  ])('$name', async ({ answer, params = tooled }) => {
    const outcome = await new Rounds().next((io) => io.sample('s', params), { s: answer })
    expect(countOf(outcome)).toBe(1)
  })

  test.each<SamplingMessageContentBlock | SamplingMessageContentBlock[]>([
    { type: 'text', text: '' },
    [],
    [{ type: 'image', data: 'AA==', mimeType: 'image/png' }],
    [{ type: 'audio', data: 'AA==', mimeType: 'audio/wav' }],
    [{ type: 'text', text: 'Let me see.' }, use('1'), use('2')],
  ])('while %o is taken', async (content) => {
    const said = { ...SAID, content }
    const outcome = await new Rounds().next((io) => io.sample('s', tooled), { s: said })
    expect(outcome).toEqual({ kind: 'done', value: said })
  })
})

interface Examples {
  CreateMessageRequestParams: CreateMessageRequestParams
  CreateMessageResult: CreateMessageResult
}

function use(id: string): SamplingMessageContentBlock {
  return { type: 'tool_use', id, name: 'weather', input: { city: 'Paris' } }
}

function result(toolUseId: string): SamplingMessageContentBlock {
  return { type: 'tool_result', toolUseId, content: [{ type: 'text', text: 'Rain.' }] }
}

function uses(...ids: string[]): SamplingMessage {
  return { role: 'assistant', content: ids.map(use) }
}

function results(...ids: string[]): SamplingMessage {
  return { role: 'user', content: ids.map(result) }
}

function countOf(outcome: Outcome): unknown {
  return outcome.kind === 'asks' ? outcome.flowState.open.get('s')?.asked : outcome
}

function examplesOf<D extends keyof Examples>(definition: D): { file: string; message: Examples[D] }[] {
  const folder = new URL(`${definition}/`, EXAMPLES)
  return readdirSync(folder).map((file) => ({
    file,
    message: JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as Examples[D],
  }))
}
