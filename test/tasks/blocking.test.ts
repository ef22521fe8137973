// A step that blocks the event loop for longer than the lease: its own worker does not claim the task again.
import type { Store } from 'mcp-rally'
import { MemoryStore, rally } from 'mcp-rally'
import { connect } from 'mcp-rally/client'
import { postgres } from 'mcp-rally/postgres'
import { sqlite } from 'mcp-rally/sqlite'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { useDatabase } from '../stores/database.ts'
import { Folder } from '../stores/folder.ts'

const LEASE_MS = 150
const database = useDatabase()
const folder = new Folder()
afterAll(() => folder.remove())

const STORES: Readonly<Record<string, () => Store>> = {
  memory: () => new MemoryStore(),
  SQLite: () => sqlite(folder.file()),
  PostgreSQL: () => postgres(database.url, { schema: database.nextSchema() }),
}

test.each(Object.keys(STORES))('on %s, each step runs once and the tasks complete', async (kind) => {
  const store = STORES[kind]?.() as Store
  const logged: string[] = []
  const log = (message: string): void => void logged.push(message)
  const logger = { warn: log, error: log }
  const app = rally({
    name: 'blocking',
    version: '1.0.0',
    store,
    logger,
    tasks: { leaseMs: LEASE_MS, watchdogMs: false },
  })
  const ran: string[] = []
  app.tool('block', { task: 'always', input: { type: 'object' } }, async (args, io) => {
    const { name } = args as { name: string }
    for (const key of ['one', 'two']) {
      await io.step(key, () => {
        ran.push(`${name} ${key}`)
        const until = Date.now() + 2 * LEASE_MS
        while (Date.now() < until);
      })
    }
    return name
  })
  app.work()
  onTestFinished(async () => {
    app.drain()
    app.interrupt()
    await app.idle()
    await store.close()
  })
  const client = await connect(app)
  const names = ['a', 'b', 'c']
  const results = await Promise.all(names.map((name) => client.callTool('block', { name })))
  expect(results.map(({ content }) => (content[0] as { text?: string }).text)).toEqual(names)
  expect(ran.toSorted()).toEqual(names.flatMap((name) => [`${name} one`, `${name} two`]))
  expect(logged).toEqual([])
})
