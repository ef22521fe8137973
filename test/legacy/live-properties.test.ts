// A handler in a live call asks on the connection and runs once. Any handler has the same result there as in one straight run. The
// client is the official one: ours carries its calls in this revision too.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { ElicitResult, ListRootsResult } from '@modelcontextprotocol/sdk/types.js'
import { ElicitRequestSchema, ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { rally } from 'mcp-rally'
import { serve } from 'mcp-rally/node'
import type { Answerer, AskedQuestion } from 'mcp-rally/testing'
import { straight } from 'mcp-rally/testing'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import type { Node } from '../tasks/programs.ts'
import { answerer, interpret, programs } from '../tasks/programs.ts'

interface Run {
  readonly said: unknown
  readonly done: readonly string[]
}

/** The questions of a session have no keys. */
function byMessage(answer: Answerer): Answerer {
  return (question) => {
    const { params } = question
    const message = params !== undefined && 'message' in params ? params.message : 'roots'
    return message.startsWith('Late') ? undefined : answer({ ...question, key: message })
  }
}

/** Runs programs on a server for a client of 2025-11-25. */
async function opened(): Promise<(program: Node[], answer: Answerer) => Promise<Run>> {
  let [current, answer, done]: [Node[], Answerer, string[]] = [[], answerer(0), []]
  const app = rally({ name: 'live', version: '1.0.0', logger: { warn() {}, error() {} } })
  app.tool('program', {}, async (_args, io) => String(await interpret(io, current, (key) => void done.push(key))))
  const { url, close } = await serve(app, { port: 0, handleSignals: false })
  onTestFinished(close)
  const client = new Client(
    { name: 'v1', version: '1.0.0' },
    { capabilities: { elicitation: { form: {} }, roots: {} } },
  )
  const answered = async ({
    method,
    params,
  }: object & { method: string; params?: object | undefined }): Promise<unknown> =>
    // The server withdraws a question whose time is over.
    (await answer({ key: '', method, params } as AskedQuestion)) ?? (await new Promise(() => {}))
  client.setRequestHandler(ElicitRequestSchema, async (request) => (await answered(request)) as ElicitResult)
  client.setRequestHandler(ListRootsRequestSchema, async (request) => (await answered(request)) as ListRootsResult)
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  onTestFinished(() => client.close())
  return async (program, answers) => {
    ;[current, answer, done] = [program, answers, []]
    const { content } = await client.callTool({ name: 'program' })
    return { said: (content as unknown[])[0], done }
  }
}

test('a live call has the result and the effects of one straight run', async () => {
  const run = await opened()
  await fc.assert(
    fc.asyncProperty(programs(), fc.nat(), async (program, seed) => {
      const expected: string[] = []
      const answer = byMessage(answerer(seed))
      const handler = (_args: object, io: Parameters<typeof interpret>[0]): Promise<number> =>
        interpret(io, program, (key) => void expected.push(key))
      const once = await straight(handler, { answer })
      const { said, done } = await run(program, answer)
      expect(said).toEqual({ type: 'text', text: String(once.result) })
      expect(done.toSorted()).toEqual(expected.toSorted())
    }),
    { numRuns: 60 },
  )
}, 60_000)
