import type { Rally } from 'mcp-rally'
import { Declined, MemoryStore, ProtocolError, rally, resolver } from 'mcp-rally'
import type { Client, ClientOptions } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'

interface Logged {
  level: 'warn' | 'error'
  message: string
  details: { method?: string; target?: string; key?: string; flow?: string; error?: unknown }
}

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

function newApp(): { app: Rally; logged: Logged[]; store: MemoryStore } {
  const logged: Logged[] = []
  const store = new MemoryStore()
  closing.push(async () => store.close?.())
  const logAs =
    (level: Logged['level']) =>
    (message: string, details = {}): void =>
      void logged.push({ level, message, details })
  const logger = { warn: logAs('warn'), error: logAs('error') }
  // With a key of its own, so that the log has no warning about a key made at start-up.
  return {
    app: rally({ name: 'failing', version: '1', keys: ['a secret of the failure tests, long enough'], store, logger }),
    logged,
    store,
  }
}

const carriers: readonly { carrier: string; task?: 'always'; options: ClientOptions }[] = [
  { carrier: 'the client', options: { revision: '2026-07-28' } },
  { carrier: 'a task', task: 'always', options: { revision: '2026-07-28' } },
  { carrier: "an older client's connection", options: { revision: '2025-11-25' } },
]

class CardRefused extends Error {}

async function connected(app: Rally, options: ClientOptions): Promise<Client> {
  const client = await connect('http://localhost/mcp', {
    fetch: (url, init) => app.fetch(new Request(url, init)),
    onElicit: () => ({ action: 'accept', content: { confirm: true } }),
    ...options,
  })
  closing.unshift(() => client.close())
  return client
}

async function callTool(app: Rally, name: string, options: ClientOptions): Promise<unknown> {
  const client = await connected(app, options)
  return client.callTool(name).catch((error: unknown) => error)
}

describe.each(carriers)('carried by $carrier', ({ task, options }) => {
  const toolOptions = task === undefined ? {} : { task }

  test('a step that fails is logged once, with its own error, and not by the replays after it', async () => {
    const { app, logged } = newApp()
    const thrown = new CardRefused('The card was refused.', { cause: new Error('limit') })
    app.tool('pay', toolOptions, async (_args, io) => {
      const failed = await io
        .step('charge', () => {
          throw thrown
        })
        .catch((error: unknown) => (error as Error).message)
      await io.confirm('sure', 'Try another card?')
      await io.confirm('really', 'Really?')
      return failed
    })
    expect(await callTool(app, 'pay', options)).toMatchObject({ content: [{ text: 'The card was refused.' }] })
    expect(logged).toEqual([
      {
        level: 'error',
        message: 'Tool "pay": "charge" failed.',
        details: {
          method: 'tools/call',
          target: 'pay',
          tool: 'pay',
          key: 'charge',
          flow: expect.stringMatching(/^[\w-]{11}$/) as string,
          round: 0,
          ...(task && { task: expect.stringMatching(/^[\w-]{11}$/) as string }),
          error: thrown,
          reference: expect.stringMatching(/^[\w-]{11}$/) as string,
        },
      },
    ])
    expect(logged[0]?.details.error).toBe(thrown)
  })

  test('a failure that passes through scopes and the handler is logged where it started, and nowhere else', async () => {
    const { app, logged } = newApp()
    app.tool('pay', toolOptions, async (_args, io) => {
      await io.confirm('sure', 'Pay?')
      return io.scope('order', (inner) =>
        inner.step('charge', (): string => {
          throw new CardRefused('The card was refused.')
        }),
      )
    })
    await callTool(app, 'pay', options)
    expect(logged.map(said)).toEqual(['error: Tool "pay": "order>charge" failed.'])
  })

  test('what the handler itself throws is logged, after all its questions', async () => {
    const { app, logged } = newApp()
    const thrown = new TypeError('x is undefined')
    app.tool('broken', toolOptions, async (_args, io) => {
      await io.confirm('sure', 'Go on?')
      throw thrown
    })
    await callTool(app, 'broken', options)
    expect(logged.map(said)).toEqual(['error: Tool "broken": failed.'])
    expect(logged[0]?.details.error).toBe(thrown)
  })

  test('a result that does not match the output schema is logged as a warning: Rally found the mistake', async () => {
    const { app, logged } = newApp()
    const output = z.object({ count: z.number() })
    app.tool('count', { ...toolOptions, output }, () => ({ count: 'three' }) as unknown as { count: number })
    await callTool(app, 'count', options)
    expect(logged.map(said)).toEqual(['warn: Tool "count": failed.'])
  })

  test('what an author says with Declined or ProtocolError, and wrong arguments, are not logged', async () => {
    const { app, logged } = newApp()
    app
      .tool('declines', toolOptions, () => {
        throw new Declined('sure', 'decline')
      })
      .tool('refuses', toolOptions, () => {
        throw new ProtocolError(-32002, 'Not found')
      })
      .tool('strict', { ...toolOptions, input: z.object({ id: z.number() }) }, () => 'found')
    for (const name of ['declines', 'refuses', 'strict']) await callTool(app, name, options)
    expect(logged).toEqual([])
  })

  test('a resolver that fails is logged under the key of its value', async () => {
    const { app, logged } = newApp()
    const account = resolver('account', {
      run: (): string => {
        throw new Error('No account.')
      },
    })
    app.tool('order', { ...toolOptions, needs: { account } }, () => 'ordered')
    await callTool(app, 'order', options)
    expect(logged.map(said)).toEqual(['error: Tool "order": "needs:account" failed.'])
  })

  test('the flow is named by a digest: neither its id nor a key that is derived from it is in the log', async () => {
    const { app, logged } = newApp()
    let idempotencyKey = ''
    app.tool('pay', toolOptions, (_args, io) =>
      io.step('charge', (context): string => {
        ;({ idempotencyKey } = context)
        throw new Error('No.')
      }),
    )
    await callTool(app, 'pay', options)
    expect(logged).toHaveLength(1)
    expect(logged[0]?.details.flow).not.toBe(idempotencyKey.slice(0, 11))
  })
})

test.each(['2026-07-28', '2025-11-25'])('prompts and resources are logged in the same way (%s)', async (revision) => {
  const { app, logged } = newApp()
  app
    .prompt('greet', {}, fail)
    .resource('config://app', { name: 'config' }, (io) => io.step('read', fail))
    .prompt('empty', {}, () => ({ messages: 3 }) as unknown as string)
  const client = await connected(app, { revision })
  await client.getPrompt('greet').catch(() => {})
  await client.readResource('config://app').catch(() => {})
  await client.getPrompt('empty').catch(() => {})
  expect(logged.map(said)).toEqual([
    'error: Prompt "greet": failed.',
    'error: Resource config://app: "read" failed.',
    'warn: Prompt "empty": failed.',
  ])
})

function fail(): string {
  throw new Error('No.')
}

function said({ level, message }: Logged): string {
  return `${level}: ${message}`
}
