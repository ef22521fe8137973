// The recipes of docs/middleware.md: the page shows the code of examples/middleware.ts, and this runs it.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Rally } from 'mcp-rally'
import { rally, send } from 'mcp-rally'
import type { Client } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { serve } from 'mcp-rally/node'
import pg from 'pg'
import { RateLimiterPostgres } from 'rate-limiter-flexible'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { audit, maintenance, rateLimit } from '../../examples/middleware.ts'
import { ROOT } from '../package/consumer.ts'
import { blocksOf } from '../package/snippets/run.ts'
import { useDatabase } from '../stores/database.ts'
import { accept, askedIn, call, errorOf, textOf } from '../wire/messages.ts'

function newApp(): Rally {
  return rally({ name: 'r', version: '1', keys: ['a secret of the recipes, long enough for it'] })
    .tool('plain', {}, () => 'done')
    .tool('ask', {}, async (_args, io) => {
      const { n } = await io.ask('n', 'A number?', z.object({ n: z.number() }))
      return `${n}`
    })
}

/** Over HTTP; the token is the user's name. */
async function clientsOf(app: Rally, ...users: string[]): Promise<Client[]> {
  const { url, close } = await serve(app, {
    port: 0,
    handleSignals: false,
    authenticate: (http) => ({ principal: http.header('authorization') ?? '' }),
  })
  const clients: Client[] = []
  for (const authorization of users) {
    clients.push(
      await connect(url, {
        headers: { authorization },
        timeoutMs: 1_000,
        name: 'docs',
        onElicit: () => accept({ n: 7 }),
      }),
    )
  }
  onTestFinished(async () => {
    for (const client of clients) await client.close()
    await close()
  })
  return clients
}

test('the page shows the code that is run here', () => {
  const example = readFileSync(join(ROOT, 'examples/middleware.ts'), 'utf8')
  const recipes = blocksOf('docs/middleware.md').filter((block) => block.startsWith('export function'))
  expect(recipes).toHaveLength(3)
  for (const recipe of recipes) expect(example).toContain(recipe)
})

describe('a rate limit', () => {
  const database = useDatabase()
  const instance = async (): ReturnType<typeof clientsOf> => {
    const pool = new pg.Pool({ connectionString: database.url })
    onTestFinished(() => pool.end())
    const limiter = await new Promise<RateLimiterPostgres>((resolve, reject) => {
      const options = { storeClient: pool, points: 10, duration: 60 }
      const made = new RateLimiterPostgres(options, (error) => (error ? reject(error) : resolve(made)))
    })
    return clientsOf(newApp().use(rateLimit(limiter)), 'alice', 'bob')
  }

  test('counts each principal over two instances that share the limiter', async () => {
    // One after the other: PostgreSQL fails if two create the limiter's table at the same moment.
    const [alice1, bob1] = await instance()
    const [alice2] = await instance()
    // Connecting was a request of each: alice has used two of ten.
    for (const _ of Array(4)) {
      await alice1?.callTool('plain')
      await alice2?.callTool('plain')
    }
    for (const alice of [alice1, alice2]) {
      await expect(alice?.callTool('plain')).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    }
    expect(await bob1?.callTool('plain')).toMatchObject({ content: [{ text: 'done' }] })
  })
})

test('an audit log has one line for each request, and a flow has one name', async () => {
  const lines: Record<string, unknown>[] = []
  const [client] = await clientsOf(newApp().use(audit((line) => lines.push({ ...line }))), 'alice')
  await client?.callTool('ask')
  await client?.callTool('plain', { no: 1 })
  const rest = { at: expect.any(String) as string, who: 'alice', by: 'docs' }
  const flow = expect.stringMatching(/^[\w-]{11}$/) as string
  const asking = { ...rest, method: 'tools/call', target: 'ask', flow }
  expect(lines).toEqual([
    { ...rest, method: 'server/discover', round: 0, outcome: 'complete' },
    { ...asking, round: 0, outcome: 'input_required' },
    { ...asking, round: 1, outcome: 'complete' },
    { ...rest, method: 'tools/call', target: 'plain', flow, round: 0, outcome: 'error' },
  ])
  expect(lines[1]?.['flow']).toBe(lines[2]?.['flow'])
})

test('while the switch is on, tools are unavailable, and a flow that waits for its answer survives it', async () => {
  let isDown = false
  const app = newApp().use(maintenance(() => isDown))
  const { state } = askedIn(await send(app, call('ask')))
  const round = { requestState: state, inputResponses: { n: accept({ n: 7 }) } }
  isDown = true
  expect(errorOf(await send(app, call('ask', {}, round)))).toMatchObject({
    message: 'Down for maintenance.',
    data: { retryAfterMs: 5_000, unprocessed: true },
  })
  const [client] = await clientsOf(app, 'alice')
  await expect(client?.callTool('plain')).rejects.toMatchObject({ code: 'UNAVAILABLE', retryAfterMs: 5_000 })
  expect((await client?.listTools())?.map(({ name }) => name)).toEqual(['plain', 'ask'])
  isDown = false
  expect(textOf(await send(app, call('ask', {}, round)))).toBe('7')
})
