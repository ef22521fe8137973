// The official v1 client with SEP-1685 done by its user: says that it carries states, and echoes them in its handlers.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { CallToolResult, ElicitResult } from '@modelcontextprotocol/sdk/types.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { serve } from 'mcp-rally/node'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { olderApp } from './app.mjs'
import { CARRIES, STATE } from './carried.ts'

const PROCESS = fileURLToPath(new URL('process.mjs', import.meta.url))

const CONTENT: readonly (readonly [RegExp, ElicitResult['content']])[] = [
  [/^Deploy/, { confirm: true }],
  [/^Your name/, { name: 'Ada' }],
  [/^How old/, { age: 36 }],
  [/^Where to/, { choice: 'hills' }],
  [/^Name \d/, { name: 'Bob' }],
]

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (let close = closing.pop(); close !== undefined; close = closing.pop()) await close()
})

/** Gives the states that it was sent, too. */
function carryingClient(): { client: Client; states: unknown[] } {
  const client = new Client({ name: 'official', version: '1' }, { capabilities: CARRIES })
  const states: unknown[] = []
  const echo = (meta: Record<string, unknown> | undefined): { _meta: Record<string, unknown> } => {
    states.push(meta?.[STATE])
    return { _meta: { [STATE]: meta?.[STATE] } }
  }
  client.setRequestHandler(ElicitRequestSchema, ({ params }): ElicitResult => {
    const [, content] = CONTENT.find(([pattern]) => pattern.test(params.message)) ?? []
    return { action: 'accept', ...(content && { content }), ...echo(params._meta) }
  })
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => ({
    role: 'assistant',
    content: { type: 'text', text: 'All in all.' },
    model: 'm',
    ...echo(params._meta),
  }))
  client.setRequestHandler(ListRootsRequestSchema, ({ params }) => ({ roots: [], ...echo(params?._meta) }))
  return { client, states }
}

const wires = [
  {
    name: 'HTTP',
    connect: async (client: Client) => {
      const { url, close } = await serve(olderApp(), { port: 0, drainMs: 100, handleSignals: false })
      closing.push(close)
      await client.connect(new StreamableHTTPClientTransport(new URL(url)))
    },
  },
  {
    name: 'stdio',
    connect: (client: Client) =>
      client.connect(new StdioClientTransport({ command: process.execPath, args: [PROCESS], stderr: 'inherit' })),
  },
]

describe.each(wires)('over $name', ({ connect }) => {
  test.each([
    ['a form between two steps', 'deploy', { env: 'prod' }, /^Deployed plan (\d) of \1 to prod$/, 1],
    ['several rounds', 'survey', {}, /^Ada is 36\.$/, 2],
    ['several questions at once', 'trip', {}, /^hills, All in all\., 0$/, 3],
    ['a page that is visited late, and asked for twice', 'sign_in', { looks: 2 }, /^Signed in\.$/, 2],
    ['rounds by hand', 'wizard', {}, /^Bob, Bob$/, 2],
  ])('carries %s, and has the result', async (_what, name, args, says, questions) => {
    const { client, states } = carryingClient()
    closing.push(() => client.close())
    await connect(client)
    const { content } = (await client.callTool({ name, arguments: args })) as CallToolResult
    expect(content).toMatchObject([{ text: expect.stringMatching(says) }])
    expect(states).toHaveLength(questions)
    expect(states.every((state) => typeof state === 'string' && state.startsWith('sr1.'))).toBe(true)
  })
})
