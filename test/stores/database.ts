// A real PostgreSQL for tests: a server of our own in a temporary folder, or the server that RALLY_TEST_POSTGRES names.
import { fork, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import type { Store } from '../../src/store/store.ts'

export interface RunningDatabase {
  readonly url: string
  /** Stops and starts it on the same data, which cuts every connection. Only for a server of our own. */
  restart(): Promise<void>
  /** Stops it until `start`. Only for a server of our own. */
  halt(): Promise<void>
  start(): Promise<void>
}

export interface TestDatabase extends RunningDatabase {
  /** Ends it for good, and removes its data. */
  stop(): Promise<void>
}

/** A server that the tests of a file share. It starts before the first test and stops after the last. */
export interface SharedDatabase extends RunningDatabase {
  /** A new name of a schema, so that tests share the server and nothing else. */
  nextSchema(): string
}

export function useDatabase(): SharedDatabase {
  let server: TestDatabase | undefined
  const prefix = `test_${randomBytes(6).toString('hex')}`
  const schemas: string[] = []
  beforeAll(async () => {
    server = await startDatabase()
  }, 60_000)
  afterAll(async () => {
    if (!isOwnServer && server !== undefined) await dropSchemas(server.url, schemas)
    await server?.stop()
  })
  const started = (): TestDatabase => {
    if (server === undefined) throw new Error('The database starts in beforeAll: use it in hooks and tests only.')
    return server
  }
  return {
    get url() {
      return started().url
    },
    restart: () => started().restart(),
    halt: () => started().halt(),
    start: () => started().start(),
    nextSchema: () => {
      const name = `${prefix}_${schemas.length}`
      schemas.push(name)
      return name
    },
  }
}

/** False if RALLY_TEST_POSTGRES names the server: tests must not stop that one. */
export const isOwnServer = process.env['RALLY_TEST_POSTGRES'] === undefined

export async function startDatabase(): Promise<TestDatabase> {
  const given = process.env['RALLY_TEST_POSTGRES']
  return given === undefined ? startOwn() : otherServer(given)
}

const KEEPER = fileURLToPath(new URL('./database-keeper.mjs', import.meta.url))

async function startOwn(): Promise<TestDatabase> {
  const keeper = fork(KEEPER, { stdio: 'inherit', execArgv: [] })
  const url = await answerOf(keeper)
  const ask = async (wanted: 'start' | 'stop'): Promise<void> => {
    keeper.send(wanted)
    await answerOf(keeper)
  }
  return {
    url,
    halt: () => ask('stop'),
    start: () => ask('start'),
    restart: async () => {
      await ask('stop')
      await ask('start')
    },
    stop: async () => {
      if (keeper.exitCode !== null || keeper.signalCode !== null) return
      const exited = once(keeper, 'exit')
      keeper.disconnect()
      await exited
    },
  }
}

interface Answer {
  failed?: string
  url?: string
}

async function answerOf(keeper: ChildProcess): Promise<string> {
  const over = new AbortController()
  const { signal } = over
  const answered = once(keeper, 'message', { signal }) as Promise<[Answer]>
  const ended: [Answer] = [{ failed: 'The process that runs PostgreSQL has ended.' }]
  const exited = once(keeper, 'exit', { signal }).then(() => ended)
  const [{ failed, url }] = await Promise.race([answered, exited])
  over.abort()
  if (url !== undefined) return url
  throw new Error(failed)
}

function otherServer(url: string): TestDatabase {
  return { url, restart: refuse, halt: refuse, start: refuse, stop: () => Promise.resolve() }
}

async function refuse(): Promise<never> {
  throw new Error('The server that RALLY_TEST_POSTGRES names must not be stopped.')
}

async function dropSchemas(url: string, names: readonly string[]): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  for (const name of names) await client.query(`DROP SCHEMA IF EXISTS "${name}" CASCADE`)
  await client.end()
}

/** Resolves when the store receives the events of other stores. It misses events before that. */
export async function listening({ tasks }: Store): Promise<void> {
  await new Promise<void>((resolve) => {
    const stop = tasks.watch(() => {
      stop()
      resolve()
    })
  })
}
