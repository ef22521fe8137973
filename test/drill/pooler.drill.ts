// The real PgBouncer in front of PostgreSQL. In transaction and statement mode it is refused, in session mode it is used. A store that
// polls uses it in transaction mode too. Needs `pgbouncer` on the path (Debian: `apt-get install pgbouncer`).
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { rally, send } from 'mcp-rally'
import { postgres } from 'mcp-rally/postgres'
import pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { newTask } from '../stores/contract.ts'
import { startDatabase, type TestDatabase } from '../stores/database.ts'
import { Folder } from '../stores/folder.ts'
import { WITH_TASKS } from '../tasks/caller.ts'
import { accept, call, errorOf, request, resultOf } from '../wire/messages.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await startDatabase()
}, 60_000)
afterAll(() => database?.stop())

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  return port
}

/** Starts PgBouncer for the rest of the test. Returns the URL of the database behind it. */
async function startBouncer(settings: readonly string[]): Promise<string> {
  const folder = new Folder()
  const port = await freePort()
  // The host may be the folder of a socket.
  const target = new pg.Client({ connectionString: database.url })
  const { host, user = '', password = '', database: name = '' } = target
  const users = folder.file('users.txt')
  const config = folder.file('pgbouncer.ini')
  writeFileSync(users, `"${user}" "${password}"\n`)
  const lines = [
    '[databases]',
    `${name} = host=${host} port=${target.port} dbname=${name}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = trust',
    `auth_file = ${users}`,
    'ignore_startup_parameters = extra_float_digits',
    ...settings,
  ]
  writeFileSync(config, `${lines.join('\n')}\n`)
  // It refuses to run as root, and must be able to read its files.
  const isRoot = process.getuid?.() === 0
  for (const file of [users, config]) chmodSync(file, 0o644)
  chmodSync(folder.path, 0o755)
  const bouncer = spawn('pgbouncer', [...(isRoot ? ['-u', 'postgres'] : []), config], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [bouncer.stdout, bouncer.stderr]) stream.on('data', (chunk: Buffer) => (output += String(chunk)))
  const failed = once(bouncer, 'error').then(([error]) => {
    throw new Error(`PgBouncer cannot be started: ${String(error)}. Install it: apt-get install pgbouncer`)
  })
  const exited = once(bouncer, 'exit')
  onTestFinished(async () => {
    bouncer.kill('SIGKILL')
    await exited
    folder.remove()
  })
  const url = `postgres://${user}:${encodeURIComponent(password)}@127.0.0.1:${port}/${name}`
  await Promise.race([failed, untilReady(url, () => output)])
  return url
}

async function untilReady(url: string, output: () => string): Promise<void> {
  for (let tries = 0; tries < 100; tries += 1) {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => {})
    try {
      await client.connect()
      await client.query('SELECT 1')
      return await client.end()
    } catch {
      await setTimeout(100)
    }
  }
  throw new Error(`PgBouncer does not answer: ${output()}`)
}

test.each([
  { mode: 'transaction', settings: ['pool_mode = transaction'] },
  { mode: 'transaction, in turn', settings: ['pool_mode = transaction', 'server_round_robin = 1'] },
  { mode: 'transaction, one server', settings: ['pool_mode = transaction', 'default_pool_size = 1'] },
  { mode: 'statement', settings: ['pool_mode = statement'] },
])('$mode mode is refused at set-up, and a client is told to try again later', async ({ mode, settings }) => {
  const url = await startBouncer(settings)
  const schema = `pooler_${mode.replaceAll(/\W+/g, '_')}`
  const store = postgres(url, { schema })
  for (let tries = 0; tries < 3; tries += 1) {
    await expect(store.tasks.create(newTask('t'))).rejects.toMatchObject({ code: 'STORE_POOLER' })
  }
  const logged: unknown[] = []
  const logger = { warn: () => {}, error: (_message: string, details?: object) => void logged.push(details) }
  const app = rally({ name: 'pooled', version: '1', store, logger })
  app.tool('task', { task: 'always' }, () => '')
  expect(errorOf(await send(app, call('task', {}, {}, WITH_TASKS)))).toMatchObject({ data: { retryAfterMs: 1000 } })
  expect(logged[0]).toMatchObject({ error: { message: expect.stringContaining('pool_mode = session') as string } })
  app.drain()
  await store.close()
  const direct = new pg.Client({ connectionString: database.url })
  await direct.connect()
  const { rows } = await direct.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema])
  expect(rows).toEqual([])
  await direct.end()
})

test('session mode is used, with its events', async () => {
  const url = await startBouncer(['pool_mode = session', 'default_pool_size = 20'])
  const options = { schema: 'pooler_session' }
  const [store, other] = [postgres(url, options), postgres(url, options)]
  await store.tasks.sweep()
  const event = new Promise((resolve) => store.tasks.watch((each) => void (each.type === 'changed' && resolve(each))))
  await other.tasks.create(newTask('t'))
  // LISTEN may begin after the first change.
  const changing = setInterval(() => void other.tasks.change('t', {}, { message: String(Date.now()) }), 100)
  expect(await event).toMatchObject({ id: 't' })
  clearInterval(changing)
  await Promise.all([store.close(), other.close()])
})

test.each([
  { mode: 'transaction', settings: ['pool_mode = transaction'] },
  { mode: 'transaction, in turn', settings: ['pool_mode = transaction', 'server_round_robin = 1'] },
  { mode: 'transaction, one server', settings: ['pool_mode = transaction', 'default_pool_size = 1'] },
])(
  '$mode mode serves two instances that poll, and every task comes to its end once',
  async ({ mode, settings }) => {
    const url = await startBouncer(settings)
    const options = { schema: `polling_${mode.replaceAll(/\W+/g, '_')}`, notify: 'poll' } as const
    const ran: string[] = []
    const tokens = new Map<string, string>()
    const instances = ['a', 'b'].map(() => {
      const store = postgres(url, options)
      const app = rally({ name: 'pooled', version: '1', keys: ['a secret that both instances have'], store })
      const definition = { task: 'always', input: z.object({ id: z.string() }), asks: { go: z.object({}) } } as const
      app.tool('task', definition, async ({ id }, io) => {
        const paid = io.event('paid', z.object({}))
        await io.step('first', () => {
          tokens.set(id, paid.token)
          ran.push(`${id} first`)
        })
        await io.ask('go', 'Go on?')
        await paid
        await io.step('second', () => void ran.push(`${id} second`))
        return 'Done.'
      })
      return { store, app }
    })
    const [one, other] = instances
    if (one === undefined || other === undefined) throw new Error('There are two instances.')
    const ids = Array.from({ length: 20 }, (_, i) => `task ${i}`)
    const live = async (id: string): Promise<void> => {
      const { taskId } = resultOf(await send(one.app, call('task', { id }, {}, WITH_TASKS)))
      const untilItIs = async (status: string): Promise<void> => {
        for (;;) {
          const task = resultOf(await send(other.app, request('tasks/get', { taskId }, WITH_TASKS)))
          if (task['status'] === status) return
          if (task['result'] !== undefined) throw new Error(`The task has ended: ${JSON.stringify(task)}`)
          await setTimeout(50)
        }
      }
      await untilItIs('input_required')
      resultOf(await send(other.app, request('tasks/update', { taskId, inputResponses: { go: accept() } }, WITH_TASKS)))
      expect(await other.app.signal(tokens.get(id) ?? '', {})).toBe('accepted')
      await untilItIs('completed')
    }
    await Promise.all(ids.map(live))
    expect(ran.toSorted()).toEqual(ids.flatMap((id) => [`${id} first`, `${id} second`]).toSorted())
    for (const { app, store } of instances) {
      app.drain()
      await app.idle()
      await store.close()
    }
  },
  60_000,
)
