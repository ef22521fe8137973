// A real PostgreSQL for tests: one of its own in a folder of its own, or the one that RALLY_TEST_POSTGRES names.
import { fork, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import type { Store } from '../../src/store/store.ts'

export interface TestDatabase {
  readonly url: string
  /** Stopped and started again on the same data: whoever is connected is thrown out. Only where it is our own. */
  restart(): Promise<void>
  /** Stopped until `start`. Only where it is our own. */
  halt(): Promise<void>
  start(): Promise<void>
  /** The end of it: nothing stays behind. */
  stop(): Promise<void>
}

/** Whether the server is one that tests may stop. */
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
  const answered = once(keeper, 'message') as Promise<[Answer]>
  const exited = once(keeper, 'exit').then((): [Answer] => [{ failed: 'The keeper of PostgreSQL has ended.' }])
  const [{ failed, url }] = await Promise.race([answered, exited])
  if (url !== undefined) return url
  throw new Error(failed)
}

function otherServer(url: string): TestDatabase {
  return { url, restart: refuse, halt: refuse, start: refuse, stop: () => Promise.resolve() }
}

async function refuse(): Promise<never> {
  throw new Error('The server of RALLY_TEST_POSTGRES is not ours to stop.')
}

/** Names for the tables of one test each, so that tests share a server and nothing else. */
export interface EmptySchemas {
  next(): string
  /** Removes all that were given out, for a server that stays. */
  drop(): Promise<void>
}

export function emptySchemas(url: string): EmptySchemas {
  const prefix = `test_${randomBytes(6).toString('hex')}`
  const given: string[] = []
  return {
    next: () => {
      const name = `${prefix}_${given.length}`
      given.push(name)
      return name
    },
    drop: async () => {
      if (isOwnServer) return
      const client = new pg.Client(url)
      await client.connect()
      for (const name of given) await client.query(`DROP SCHEMA IF EXISTS "${name}" CASCADE`)
      await client.end()
    },
  }
}

/** A store calls everybody that watches once it hears from the others: news before that are missed. */
export async function listening({ tasks }: Store): Promise<void> {
  await new Promise<void>((resolve) => {
    const stop = tasks.watch(() => {
      stop()
      resolve()
    })
  })
}
