// Events from outside with a store that polls: no instance hears of what another one writes.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { rally, send } from 'mcp-rally'
import { postgres } from 'mcp-rally/postgres'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { gate } from '../../src/testing/manual-scheduler.ts'
import { ROOT } from '../package/consumer.ts'
import { useDatabase } from '../stores/database.ts'
import { call, resultOf } from '../wire/messages.ts'
import { WITH_TASKS } from './caller.ts'

const KEYS = ['a secret of the tests of polled events']
const database = useDatabase()

/** A process of its own sends the values one after the other, and prints what it is told. */
async function signal(schema: string, token: string, ...values: readonly object[]): Promise<unknown> {
  const program = `
    import { rally } from 'mcp-rally'
    import { postgres } from 'mcp-rally/postgres'
    const [url, schema, keys, token, values] = JSON.parse(process.env.GIVEN)
    const store = postgres(url, { schema, notify: 'poll' })
    const app = rally({ name: 'shop', version: '1', keys, store })
    const told = []
    for (const value of values) told.push(await app.signal(token, value))
    console.log(JSON.stringify(told))
    await store.close()`
  const given = JSON.stringify([database.url, schema, KEYS, token, values])
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: ROOT,
    env: { ...process.env, GIVEN: given },
    timeout: 20_000,
  })
  return JSON.parse(stdout)
}

test('an event that another process sends is found by polling, without LISTEN or NOTIFY', async () => {
  const schema = database.nextSchema()
  const pool = new pg.Pool({ connectionString: database.url })
  // A connection may still be open for a moment when the server stops.
  pool.on('error', () => {})
  const texts: string[] = []
  const store = postgres(
    {
      query: (query) => {
        texts.push(query.text)
        return pool.query(query)
      },
      connect: () => pool.connect(),
      on: (event, listener) => pool.on(event, listener),
      removeListener: (event, listener) => pool.removeListener(event, listener),
    },
    { schema, notify: 'poll' },
  )
  const app = rally({ name: 'shop', version: '1', keys: KEYS, store })
  const done = gate()
  const tokens: string[] = []
  const mailed = gate()
  app.tool('invoice', { task: 'always' }, async (_args, io) => {
    const paid = io.event('paid', z.object({ amount: z.number() }))
    await io.step('mail', () => {
      tokens.push(paid.token)
      mailed.open()
    })
    const { amount } = await paid
    await io.step('book', () => done.open())
    return `booked ${amount}`
  })
  onTestFinished(async () => {
    app.drain()
    await app.idle()
    await store.close()
    await pool.end()
  })
  const { taskId } = resultOf(await send(app, call('invoice', {}, {}, WITH_TASKS)))
  await mailed.promise
  expect(await signal(schema, tokens[0] ?? '', { amount: 7 }, { amount: 8 })).toEqual(['accepted', 'repeated'])
  await done.promise
  app.drain()
  await app.idle()
  expect(await store.tasks.read(String(taskId))).toMatchObject({
    status: 'completed',
    outcome: expect.stringContaining('booked 7') as string,
  })
  expect(tokens).toHaveLength(1)
  expect(texts.filter((text) => /LISTEN|pg_notify/i.test(text))).toEqual([])
})
