// What code of an app finds in an AsyncLocalStorage: in a call what its own caller put there, and in a task nothing.
import { AsyncLocalStorage } from 'node:async_hooks'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Rally, RallyOptions, Store } from 'mcp-rally'
import { MemoryStore, rally } from 'mcp-rally'
import type { Client, ClientOptions } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { nodeHandler } from 'mcp-rally/node'
import { postgres } from 'mcp-rally/postgres'
import { sqlite } from 'mcp-rally/sqlite'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { useDatabase } from '../stores/database.ts'
import { Folder } from '../stores/folder.ts'

const database = useDatabase()
const folder = new Folder()
let files = 0
afterAll(() => folder.remove())
const storage = new AsyncLocalStorage<string>()
const NAMES = ['ada', 'bob', 'cyd']

const STORES: Readonly<Record<string, () => Store>> = {
  memory: () => new MemoryStore(),
  SQLite: () => sqlite(folder.file(`${(files += 1)}.db`)),
  PostgreSQL: () => postgres(database.url, { schema: database.nextSchema() }),
}

/** An app whose tool notes what it finds in the storage, by the place where it looked and the name that it was called with. */
function noting(store: Store | undefined, options: Partial<RallyOptions> = {}): { app: Rally; notes: Notes } {
  const notes: Notes = {}
  const app = rally({ name: 'notes', version: '1.0.0', ...(store && { store }), ...options })
  for (const [tool, task] of [
    ['call', 'never'],
    ['task', 'always'],
  ] as const) {
    if (task === 'always' && store === undefined) continue
    app.tool(tool, { task, input: { type: 'object', properties: { name: { type: 'string' } } } }, async (args, io) => {
      const name = String((args as { name?: unknown }).name)
      const note = (place: string): void => void ((notes[place] ??= {})[name] = storage.getStore() ?? 'nothing')
      note('start')
      await io.step('first', async () => {
        note('step')
        await new Promise((resolve) => setTimeout(resolve, 5))
        note('step after a wait')
      })
      note('after the step')
      await Promise.all([io.confirm('sure', 'Sure?'), io.step('beside', () => note('step beside a question'))])
      note('after the answer')
      await storage.run('inner', () => io.step('inner', () => note('step in a context of its own')))
      return name
    })
  }
  onTestFinished(async () => {
    app.drain()
    app.interrupt()
    await app.idle()
    await store?.close()
  })
  return { app, notes }
}

type Notes = Record<string, Record<string, string>>

const PLACES = ['start', 'step', 'step after a wait', 'after the step', 'step beside a question', 'after the answer']

function ofEach(found: (name: string) => string): Record<string, string> {
  return Object.fromEntries(NAMES.map((name) => [name, found(name)]))
}

function everywhere(found: (name: string) => string): Notes {
  return {
    ...Object.fromEntries(PLACES.map((place) => [place, ofEach(found)])),
    'step in a context of its own': ofEach(() => 'inner'),
  }
}

const OPTIONS: ClientOptions = { onElicit: () => ({ action: 'accept', content: { confirm: true } }) }

/** All three call the tool at once, each through a client of its own. */
async function callAll(tool: string, clientOf: (name: string) => Promise<Client>): Promise<void> {
  const clients = await Promise.all(NAMES.map(clientOf))
  await Promise.all(NAMES.map((name, i) => storage.run(name, async () => clients[i]?.callTool(tool, { name }))))
  await Promise.all(clients.map((client) => client.close()))
}

/** A server whose listener calls the handler in a context of the caller's name, which is a header. */
async function listening(app: Rally): Promise<string> {
  const handler = nodeHandler(app)
  const server = createServer((request, response) =>
    storage.run(String(request.headers['x-name']), () => handler(request, response)),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

/** How a caller reaches the app on each host, in a context of its own. */
const HOSTS: Readonly<
  Record<string, (app: Rally) => Promise<(name: string) => ClientOptions & { to: Rally | string }>>
> = {
  node: async (app) => {
    const url = await listening(app)
    return (name) => ({ to: url, headers: { 'x-name': name } })
  },
  fetch: async (app) => (name) => ({
    to: 'http://127.0.0.1/',
    fetch: async (url, init) => storage.run(name, () => app.fetch(new Request(url, init as RequestInit))),
  }),
  memory: async (app) => () => ({ to: app }),
}

/** An app in the same process supports no older revision. */
const CALLS = [
  ['node', '2026-07-28'],
  ['node', '2025-11-25'],
  ['fetch', '2026-07-28'],
  ['fetch', '2025-11-25'],
  ['memory', '2026-07-28'],
] as const

describe('on each host', () => {
  test.each(CALLS)('%s: each call of revision %s sees what its own caller has set', async (host, revision) => {
    const { app, notes } = noting(undefined)
    const reach = await HOSTS[host]?.(app)
    await callAll('call', async (name) => {
      const { to, ...options } = reach?.(name) ?? { to: app }
      return connect(to, { ...OPTIONS, ...options, revision })
    })
    expect(notes).toEqual(everywhere((name) => name))
  })
})

describe.each(Object.keys(STORES))('with a store: %s', (kind) => {
  test('each call that uses the store once sees what its own caller has set', async () => {
    const store = STORES[kind]?.() as Store
    const { app, notes } = noting(store, { once: store.once })
    const url = await listening(app)
    await callAll('call', (name) => connect(url, { ...OPTIONS, headers: { 'x-name': name } }))
    expect(notes).toEqual(everywhere((name) => name))
  })

  test.each(['node', 'memory'])('a task sees nothing of any caller, on the host %s', async (host) => {
    const { app, notes } = noting(STORES[kind]?.())
    app.work()
    const reach = await HOSTS[host]?.(app)
    await callAll('task', async (name) => {
      const { to, ...options } = reach?.(name) ?? { to: app }
      return connect(to, { ...OPTIONS, ...options })
    })
    expect(notes).toEqual(everywhere(() => 'nothing'))
  })

  test('a task sees nothing of the caller that started the worker', async () => {
    const { app, notes } = noting(STORES[kind]?.())
    storage.run('starter', () => app.work())
    await callAll('task', () => connect(app, OPTIONS))
    expect(notes).toEqual(everywhere(() => 'nothing'))
  })
})
