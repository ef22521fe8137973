// Calls of older clients whose event stream is taken from them.
import { rally } from 'mcp-rally'
import type { Rally } from 'mcp-rally'
import { expect, test } from 'vitest'
import { initializeMessage } from './raw.ts'

interface Failure {
  readonly level: 'warn' | 'error'
  readonly error?: { readonly code?: string; readonly message?: string }
}

function newApp(failures: Failure[], legacy = {}): Rally {
  return rally({
    name: 'evicting',
    version: '1',
    limits: { maxStreams: 4, share: 1 },
    legacy,
    http: { authenticate: (request) => ({ principal: request.header('x-principal') ?? 'nobody' }) },
    logger: {
      warn: (_message, details) => failures.push({ level: 'warn', ...details }),
      error: (_message, details) => failures.push({ level: 'error', ...details }),
    },
  }).tool('ask', {}, async (_args, io) => ((await io.confirm('sure', 'Sure?')) ? 'Yes.' : 'No.'))
}

async function post(app: Rally, principal: string, message: object, session = ''): Promise<Response> {
  return app.fetch(
    new Request('http://localhost/mcp', {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        'X-Principal': principal,
        ...(session !== '' && { 'Mcp-Session-Id': session, 'MCP-Protocol-Version': '2025-11-25' }),
      },
      body: JSON.stringify(message),
    }),
  )
}

/** Leaves a call of a session open. Returns the stream on which it was asked. */
async function openCall(app: Rally, principal: string, id = 1): Promise<ReadableStreamDefaultReader<Uint8Array>> {
  const begun = await post(app, principal, initializeMessage({ capabilities: { elicitation: {} } }))
  const session = begun.headers.get('mcp-session-id') ?? ''
  const params = { name: 'ask', arguments: {} }
  const response = await post(app, principal, { jsonrpc: '2.0', id, method: 'tools/call', params }, session)
  const reader: ReadableStreamDefaultReader<Uint8Array> | undefined = response.body?.getReader()
  if (reader === undefined) throw new Error('There is no stream.')
  for (let text = ''; !text.includes('elicitation/create');) {
    const { value } = await reader.read()
    text += new TextDecoder().decode(value)
  }
  return reader
}

test('a call whose stream is evicted ends at once, and does not wait for an answer', async () => {
  const failures: Failure[] = []
  const app = newApp(failures)
  const first = await openCall(app, 'ann')
  for (const principal of ['ann', 'ann', 'cyd']) await openCall(app, principal)
  expect(failures).toEqual([])
  await openCall(app, 'bob')
  await expect.poll(() => failures.map(({ level, error }) => [level, error?.code])).toEqual([['warn', 'NO_STREAM']])
  expect(failures[0]?.error?.message).toContain('"sure" before its event stream was closed')
  // Its reader sees the end.
  for (let read = await first.read(); !read.done; read = await first.read());
})

test('a call whose client has left and does not come back ends when its stream is forgotten', async () => {
  const failures: Failure[] = []
  const reader = await openCall(newApp(failures, { keepMs: 50 }), 'ann')
  await reader.cancel()
  await expect
    .poll(() => failures.map(({ level, error }) => [level, error?.code]), { timeout: 5_000 })
    .toEqual([['warn', 'NO_STREAM']])
})
