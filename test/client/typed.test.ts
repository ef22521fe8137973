// `client.tools` at run time, with every carrier of a call and with a server of 2025.
import type { ServerTypes } from 'mcp-rally/client'
import { ClientError, connect } from 'mcp-rally/client'
import { rally, ToolError } from 'mcp-rally'
import { serve } from 'mcp-rally/node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'

interface Log {
  readonly methods: string[]
}

function typedApp({ methods }: Log = { methods: [] }) {
  return rally({ name: 'typed', version: '1.0.0' })
    .use((call, next) => {
      methods.push(call.method)
      return next()
    })
    .tool(
      'deploy',
      { input: z.object({ env: z.enum(['prod', 'test']) }), output: z.object({ url: z.string() }) },
      async ({ env }, io) => {
        await io.confirm('sure', 'Sure?')
        return { url: `https://${env}.example.com` }
      },
    )
    .tool('get-weather', {}, () => 'Sunny')
    .tool('both', {}, () => ({ content: [], structuredContent: { a: 1 } }))
    .tool('fail', { output: z.object({ a: z.number() }) }, (): { a: number } => {
      throw new ToolError('Out of paper.')
    })
}

const onElicit = () => ({ action: 'accept', content: { confirm: true } }) as const

const WIRES = [
  { name: 'memory', revision: undefined, isServed: false },
  { name: 'HTTP', revision: undefined, isServed: true },
  { name: 'HTTP of 2025-11-25', revision: '2025-11-25', isServed: true },
]

describe.each(WIRES)('over $name', ({ revision, isServed }) => {
  const open = async (log?: Log) => {
    const app = typedApp(log)
    const serving = isServed ? await serve(app, { port: 0, handleSignals: false }) : undefined
    const client = await connect<typeof app>(serving?.url ?? app, { onElicit, ...(revision && { revision }) })
    onTestFinished(async () => {
      await client.close()
      await serving?.close()
    })
    return client
  }

  test('a tool with an output schema returns its structured content, and others the whole result', async () => {
    const { tools } = await open()
    expect(await tools.deploy({ env: 'prod' })).toEqual({ url: 'https://prod.example.com' })
    expect(await tools['get-weather']()).toMatchObject({ content: [{ type: 'text', text: 'Sunny' }] })
    expect(await tools.both()).toMatchObject({ content: [], structuredContent: { a: 1 } })
  })

  test('a tool that failed throws its text, with the result beside it', async () => {
    const { tools } = await open()
    const error: unknown = await tools.fail().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ClientError)
    expect(error).toMatchObject({
      code: 'TOOL_FAILED',
      message: 'Tool "fail" failed: Out of paper.',
      result: { isError: true, content: [{ type: 'text', text: 'Out of paper.' }] },
    })
  })

  test('a tool that the server does not have is its error', async () => {
    const client = await open()
    const { gone } = client.tools as unknown as { gone: () => Promise<unknown> }
    await expect(gone()).rejects.toMatchObject({ code: 'PROTOCOL', rpcCode: -32602 })
  })

  test('the list is read once, also by calls that begin together, and never without a typed call', async () => {
    const log: Log = { methods: [] }
    const client = await open(log)
    await client.callTool('get-weather')
    expect(log.methods.filter((method) => method === 'tools/list')).toEqual([])
    await Promise.all([client.tools.both(), client.tools['get-weather']()])
    await client.tools.both()
    expect(log.methods.filter((method) => method === 'tools/list')).toEqual(['tools/list'])
  })
})

test('types that are older than the server do not hide a result that does not match them', async () => {
  type Server = ServerTypes<{ old: { input: {}; output: { a: string } } }>
  const lying = {
    dispatch: async (message: unknown) => {
      const { id, method } = message as { id: number; method: string }
      const listed = { name: 'old', inputSchema: { type: 'object' }, outputSchema: OUTPUT }
      const results: Record<string, object> = {
        'server/discover': { supportedVersions: ['2026-07-28'], capabilities: {} },
        'tools/list': { tools: [listed] },
        'tools/call': { content: [], structuredContent: { a: 1 } },
      }
      return { text: JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...results[method] } }) }
    },
  }
  const OUTPUT = { type: 'object', properties: { a: { type: 'string' } } }
  const client = await connect<Server>(lying)
  await expect(client.tools.old()).rejects.toMatchObject({ code: 'RESULT_INVALID' })
})

test('the signal and the time of a call hold while the list is read', async () => {
  type Server = ServerTypes<{ slow: { input: {} } }>
  const silent = {
    dispatch: (message: unknown) => {
      const { id, method } = message as { id: number; method: string }
      const result = { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: {} }
      if (method !== 'server/discover') return new Promise<undefined>(() => {})
      return Promise.resolve({ text: JSON.stringify({ jsonrpc: '2.0', id, result }) })
    },
  }
  const client = await connect<Server>(silent)
  onTestFinished(() => client.close())
  await expect(client.tools.slow({}, { timeoutMs: 20 })).rejects.toMatchObject({ code: 'TIMEOUT' })
  const controller = new AbortController()
  const aborted = client.tools.slow({}, { signal: controller.signal })
  controller.abort()
  await expect(aborted).rejects.toMatchObject({ code: 'ABORTED' })
  const left = client.tools.slow()
  await client.close()
  await expect(left).rejects.toMatchObject({ code: 'CLOSED' })
})

test('awaiting client.tools itself gives client.tools', async () => {
  const client = await connect(typedApp())
  const tools: unknown = client.tools
  expect(await tools).toBe(client.tools)
})
