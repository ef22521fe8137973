// What the types of the client say of a call: each comes to its own kind of result.
import { rally } from 'mcp-rally'
import type {
  CallToolResult,
  Client,
  GetPromptResult,
  PendingCall,
  PendingPrompt,
  ProtocolError,
  ServerQuestion,
  ReadResourceResult,
  CallRound,
  ClientTask,
} from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { describe, expectTypeOf, test } from 'vitest'

declare const client: Client
declare const pending: PendingCall
declare const pendingPrompt: PendingPrompt

/** What the rounds of a call are. */
type RoundOf<T> = T extends AsyncGenerator<infer R> ? R : never

describe('rounds', () => {
  test('of a tool, a prompt and a resource end with their own result', () => {
    const tool = client.rounds({ tool: 'a', arguments: { b: 1 } })
    const prompt = client.rounds({ prompt: 'a' })
    const resource = client.rounds({ resource: 'a://b' })
    expectTypeOf<RoundOf<typeof tool>>().toEqualTypeOf<CallRound<CallToolResult>>()
    expectTypeOf<RoundOf<typeof prompt>>().toEqualTypeOf<CallRound<GetPromptResult>>()
    expectTypeOf<RoundOf<typeof resource>>().toEqualTypeOf<CallRound<ReadResourceResult>>()
  })

  test('that are pending end with what they were begun for', () => {
    const prompt = client.rounds(pendingPrompt)
    expectTypeOf<RoundOf<typeof prompt>>().toEqualTypeOf<CallRound<GetPromptResult>>()
    expectTypeOf(client.resume(pendingPrompt)).resolves.toEqualTypeOf<GetPromptResult>()
    expectTypeOf(client.resume(pending)).resolves.toEqualTypeOf<CallToolResult | GetPromptResult | ReadResourceResult>()
  })
})

test('a tool that is started has its result, or is a task that tells what belongs to each status', async () => {
  const started = await client.startTool('a', { b: 1 })
  if (started.kind === 'done') expectTypeOf(started.result).toEqualTypeOf<CallToolResult>()
  else expectTypeOf(started.task).toEqualTypeOf<ClientTask>()
  const task = client.task('id')
  expectTypeOf(client.task(task.toJSON())).toEqualTypeOf<ClientTask>()
  expectTypeOf(task.result()).resolves.toEqualTypeOf<CallToolResult>()
  for await (const state of task) {
    if (state.status === 'input_required') expectTypeOf(state.questions).toEqualTypeOf<readonly ServerQuestion[]>()
    if (state.status === 'completed') expectTypeOf(state.result).toEqualTypeOf<CallToolResult>()
    if (state.status === 'failed') expectTypeOf(state.error).toEqualTypeOf<ProtocolError>()
    // @ts-expect-error only where it has come to its end
    if (state.status === 'working') void state.result
  }
})

test('anything that is a server can be connected to, and nothing else', () => {
  expectTypeOf(connect).toBeCallableWith('http://127.0.0.1:3000/mcp')
  expectTypeOf(connect).toBeCallableWith(new URL('http://127.0.0.1:3000/mcp'))
  expectTypeOf(connect).toBeCallableWith({ command: 'node', args: ['server.js'] })
  expectTypeOf(connect).toBeCallableWith(rally({ name: 'a', version: '1' }))
  // @ts-expect-error neither an address, a command nor an app
  void connect({ port: 3000 })
})

test('answerers are typed by what they are asked', () => {
  void connect('http://127.0.0.1:3000/mcp', {
    fetch: globalThis.fetch,
    onElicit: ({ form, message }, { server, signal }) => {
      expectTypeOf(form.properties).toBeObject()
      expectTypeOf(message).toBeString()
      expectTypeOf(server.name).toBeString()
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
      return { action: 'accept', content: { a: 1 } }
    },
    onVisit: ({ url, host, lookalike }) => {
      expectTypeOf([url, host]).toEqualTypeOf<string[]>()
      return { action: lookalike ? 'decline' : 'accept' }
    },
    onSample: {
      tools: true,
      answer: ({ messages, maxTokens }) => {
        expectTypeOf(maxTokens).toBeNumber()
        expectTypeOf(messages).toBeArray()
        return { role: 'assistant', content: { type: 'text', text: '' }, model: 'm' }
      },
    },
    onRoots: () => [{ uri: 'file:///a' }],
    // @ts-expect-error no such option
    onQuestion: () => {},
  })
})
