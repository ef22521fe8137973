// Sleeps and deadlines of a call that a live session carries: in memory, up to `legacy.callMs`. The client is the official one.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import type { RallyOptions } from 'mcp-rally'
import { rally } from 'mcp-rally'
import { serve } from 'mcp-rally/node'
import { expect, onTestFinished, test } from 'vitest'

const FORM = { type: 'object', properties: { yes: { type: 'boolean' } }, required: ['yes'] } as const

/** Calls the tool. Every question is logged, and the first ones are never answered. */
async function call(
  tool: string,
  options: Partial<RallyOptions> = {},
  unanswered = 0,
): Promise<{ text: string; asked: string[] }> {
  const app = rally({ name: 'waits', version: '1.0.0', logger: { warn() {}, error() {} }, ...options })
  app.tool('long', {}, async (_args, io) => {
    await io.step('before', () => 1)
    await io.sleep('pause', 1_100)
    return `slept in ${io.revision}`
  })
  for (const withinMs of [300, 1_500]) {
    app.tool(`deadline_${withinMs}`, {}, async (_args, io) => {
      const first = io.ask('first', 'First?', FORM, { withinMs, otherwise: 'nobody' })
      const second = io.ask('second', 'Second?', FORM)
      return JSON.stringify(await Promise.all([first, second]))
    })
  }
  app.tool('patient', {}, async (_args, io) =>
    JSON.stringify(await io.ask('only', 'Only?', FORM, { withinMs: 300, otherwise: 'nobody' })),
  )
  app.tool('deadline_late', {}, async (_args, io) => {
    await io.sleep('pause', 1_000)
    return JSON.stringify(await io.ask('only', 'Only?', FORM, { withinMs: 1_300, otherwise: 'nobody' }))
  })
  app.tool('naps', { timeoutMs: 400 }, async (_args, io) => {
    for (let nap = 0; nap < 8; nap += 1) await io.sleep(`nap[${nap}]`, 100)
    return 'slept'
  })
  const server = await serve(app, { port: 0 })
  onTestFinished(() => server.close())
  const asked: string[] = []
  const client = new Client({ name: 'waits', version: '1.0.0' }, { capabilities: { elicitation: {} } })
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    asked.push(params.message)
    return asked.length > unanswered ? { action: 'accept', content: { yes: true } } : new Promise(() => {})
  })
  await client.connect(new StreamableHTTPClientTransport(new URL(server.url)))
  onTestFinished(() => client.close())
  const { content } = (await client.callTool({ name: tool })) as { content: { text: string }[] }
  return { text: content[0]?.text ?? '', asked }
}

test('a sleep ends the pass, and the next one begins when it is due', async () => {
  expect(await call('long')).toEqual({ text: 'slept in 2025-11-25', asked: [] })
})

test('short sleeps do not add up to the time limit of a pass', async () => {
  expect(await call('naps')).toEqual({ text: 'slept', asked: [] })
})

test('sleeps that are longer than legacy.callMs together fail when it is reached', async () => {
  const { text } = await call('naps', { legacy: { callMs: 500 } })
  expect(text).toMatch(/^The call (took|would wait) longer than legacy\.callMs, which is 500 ms\.$/)
})

test('a sleep that is longer than legacy.callMs is an error that says so', async () => {
  await expect(call('long', { legacy: { callMs: 1_000 } })).rejects.toThrow(/limit here is 1000 ms.*legacy\.callMs/)
})

test('a deadline fires by itself and withdraws its question, and what is still open is asked again', async () => {
  const { text, asked } = await call('deadline_300', {}, 2)
  expect(text).toBe('["nobody",{"yes":true}]')
  expect(asked).toEqual(['First?', 'Second?', 'Second?'])
})

test('legacy.askMs does not end a question that has a longer deadline', async () => {
  const { text, asked } = await call('deadline_1500', { legacy: { askMs: 1_000 } }, 1)
  expect(text).toBe('["nobody",{"yes":true}]')
  expect(asked).toEqual(['First?', 'Second?'])
  const onTime = await call('patient', { legacy: { askMs: 100, callMs: Infinity } }, 1)
  expect(onTime).toEqual({ text: '"nobody"', asked: ['Only?'] })
})

test('legacy.askMs ends the questions of the same round that have none', async () => {
  const { text } = await call('deadline_1500', { legacy: { askMs: 100 } }, 2)
  expect(text).toBe('The client did not answer the question "second" within 100 ms.')
})

test('legacy.callMs ends a question whose deadline is later', async () => {
  const { text } = await call('deadline_late', { legacy: { callMs: 1_400 } }, 1)
  expect(text).toMatch(/^The client did not answer the question "only" within \d+ ms\.$/)
})
