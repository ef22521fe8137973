// A database that goes away and comes back. A crash of the process would fail this file: errors that nobody hears do.
import { postgres } from 'mcp-rally/postgres'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import type { TaskEvent, TaskRecord } from '../../src/store/tasks.ts'
import { newTask } from './contract.ts'
import { isOwnServer, listening, useDatabase } from './database.ts'

const LONG_MS = 60_000

const database = useDatabase()

/** A URL whose connections are known by a name, so that they can be told from those of others on the server. */
function namedUrl(): { url: string; name: string } {
  const name = database.nextSchema()
  const { url } = database
  return { name, url: `${url}${url.includes('?') ? '&' : '?'}application_name=${name}` }
}

async function connected(): Promise<pg.Client> {
  const client = new pg.Client(database.url)
  // It may lose its server.
  client.on('error', () => {})
  await client.connect()
  return client
}

/** As if the server had gone: all connections of this name are cut. */
async function cut(name: string): Promise<void> {
  const client = await connected()
  await client.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1`, [name])
  await client.end()
}

describe.each(['a URL', 'a pool that was given'])('a store on %s', (on) => {
  let name: string
  let pool: pg.Pool
  let store: Store
  beforeEach(() => {
    const named = namedUrl()
    name = named.name
    pool = new pg.Pool({ connectionString: named.url })
    store = postgres(on === 'a URL' ? named.url : pool, { schema: database.nextSchema() })
  })
  afterEach(async () => {
    await store.close()
    await pool.end()
  })

  test('goes on after its connections were cut, with what had been written (1)', async () => {
    await listening(store)
    const made = await store.tasks.create(newTask('t'))
    // Several at once, so that several connections lie idle.
    await Promise.all(Array.from({ length: 5 }, () => store.tasks.read('t')))
    await cut(name)
    // A connection that is not yet known to be cut fails once. None fails twice.
    let again: TaskRecord | undefined
    for (let connections = 5; again === undefined && connections >= 0; connections -= 1)
      again = await store.tasks.read('t').catch(() => undefined)
    expect(again).toEqual(made)
  })

  test('hears the news again once it is connected again, and is told to look at what it may have missed', async () => {
    await listening(store)
    const heard: TaskEvent[] = []
    let look: (() => void) | undefined
    store.tasks.watch((news) => {
      heard.push(news)
      if (news.type === 'due') look?.()
    })
    const letter = new Promise<void>((resolve) => {
      store.mailbox.watch('box', resolve)
    })
    const connectedAgain = new Promise<void>((resolve) => {
      look = resolve
    })
    await cut(name)
    await connectedAgain
    await letter
    const changed = new Promise<void>((resolve) => {
      store.tasks.watch(({ type }) => {
        if (type === 'changed') resolve()
      })
    })
    await store.tasks.create(newTask('t'))
    const version = await store.tasks.change('t', {}, { message: 'Hello.' })
    await changed
    expect(heard).toContainEqual({ type: 'changed', id: 't', version })
  })
})

/** What a store may be asked, and must not answer while its database is away. */
const QUESTIONS: Record<string, (store: Store) => unknown> = {
  create: ({ tasks }) => tasks.create(newTask('another')),
  read: ({ tasks }) => tasks.read('t'),
  list: ({ tasks }) => tasks.list('ada', 10),
  claim: ({ tasks }) => tasks.claim({ after: '', leaseMs: LONG_MS }),
  renew: ({ tasks }) => tasks.renew([{ id: 't', fence: 1 }], LONG_MS),
  append: ({ tasks }) => tasks.append({ id: 't', fence: 1 }, '1'),
  change: ({ tasks }) => tasks.change('t', {}, { message: 'Hello.' }),
  sweep: ({ tasks }) => tasks.sweep(),
  'once claim': ({ once }) => once.claim('key', 'note', LONG_MS),
  'once renew': ({ once }) => once.renew('key', '1', LONG_MS),
  'once settle': ({ once }) => once.settle('key', '1', 'record', LONG_MS),
  leave: ({ mailbox }) => mailbox.leave('box', 1, 'text', LONG_MS),
  after: ({ mailbox }) => mailbox.after('box', 0),
}

async function outcomes(store: Store): Promise<Record<string, string>> {
  const all = await Promise.all(
    Object.entries(QUESTIONS).map(async ([name, ask]) => {
      try {
        await ask(store)
        return [name, 'answered']
      } catch {
        return [name, 'rejected']
      }
    }),
  )
  return Object.fromEntries(all) as Record<string, string>
}

const ALL_REJECTED = Object.fromEntries(Object.keys(QUESTIONS).map((name) => [name, 'rejected']))
const ALL_ANSWERED = Object.fromEntries(Object.keys(QUESTIONS).map((name) => [name, 'answered']))

describe.runIf(isOwnServer)('a store whose database is stopped', () => {
  test('rejects whatever it is asked (5), and answers again once the database is back', async () => {
    const store = postgres(database.url, { schema: database.nextSchema() })
    await listening(store)
    const made = await store.tasks.create(newTask('t'))
    await database.halt()
    const heardAgain = listening(store)
    expect(await outcomes(store)).toEqual(ALL_REJECTED)
    await database.start()
    expect(await store.tasks.read('t')).toEqual(made)
    expect(await outcomes(store)).toEqual(ALL_ANSWERED)
    await heardAgain
    await store.close()
  })

  test('is set up once the database is there, where it was away at first', async () => {
    const store = postgres(database.url, { schema: database.nextSchema() })
    const heard = listening(store)
    await database.halt()
    await expect(store.tasks.read('t')).rejects.toThrow(/./)
    await database.start()
    expect(await store.tasks.read('t')).toBeUndefined()
    await heard
    await store.close()
  })

  test('never answers as if a task were not there, also what is under way when the database is stopped', async () => {
    const schema = database.nextSchema()
    const store = postgres(database.url, { schema })
    await store.tasks.create(newTask('t'))
    const blocker = await connected()
    const observer = await connected()
    await blocker.query(`BEGIN; LOCK TABLE "${schema}".tasks`)
    const reads = Promise.allSettled(Array.from({ length: 10 }, () => store.tasks.read('t')))
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${schema}%'`
    // They share a statement.
    while ((await observer.query(waiting)).rows.length === 0);
    await database.restart()
    // Those whose blocker went before them have their answer.
    for (const read of await reads)
      if (read.status === 'fulfilled') expect(read.value).toMatchObject({ id: 't' })
      else expect(read.reason).toBeInstanceOf(Error)
    expect(await store.tasks.read('t')).toMatchObject({ id: 't' })
    await Promise.all([blocker.end(), observer.end(), store.close()])
  })
})

describe('a store that is closed', () => {
  test('has no connection left, and says that it is closed', async () => {
    const { url, name } = namedUrl()
    const store = postgres(url, { schema: database.nextSchema() })
    await listening(store)
    await store.tasks.create(newTask('t'))
    const client = await connected()
    const open = async (): Promise<number> => {
      const { rows } = await client.query(`SELECT 1 FROM pg_stat_activity WHERE application_name = $1`, [name])
      return rows.length
    }
    expect(await open()).toBeGreaterThanOrEqual(2)
    await store.close()
    // The server notices the end of a connection a moment later.
    while ((await open()) > 0);
    await expect(store.tasks.read('t')).rejects.toMatchObject({ code: 'STORE_CLOSED' })
    await client.end()
  })

  test('leaves a pool that was given as it found it', async () => {
    const pool = new pg.Pool({ connectionString: database.url })
    const store = postgres(pool, { schema: database.nextSchema() })
    await listening(store)
    await store.close()
    expect(pool.listenerCount('error')).toBe(0)
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    expect(pool.totalCount).toBe(pool.idleCount)
    await pool.end()
  })

  test('may be closed before it was ever used, twice, and while it is being set up', async () => {
    const unused = postgres(database.url, { schema: database.nextSchema() })
    await unused.close()
    await unused.close()
    const busy = postgres(database.url, { schema: database.nextSchema() })
    busy.tasks.watch(() => {})
    const reading = busy.tasks.read('t').catch((error: unknown) => error)
    await busy.close()
    await reading
    await expect(busy.tasks.read('t')).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  })
})
