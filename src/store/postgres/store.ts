// PostgreSQL as the store of a fleet.
import { RallyError } from '../../protocol/errors.ts'
import type { Store } from '../store.ts'
import { Database } from './database.ts'
import { Listening } from './listener.ts'
import { PostgresMailbox } from './mailbox.ts'
import { PostgresOnceStore } from './once.ts'
import { makePool, type PoolLike } from './pool.ts'
import { PostgresTasks } from './tasks.ts'

export interface PostgresOptions {
  /** Where the tables are, in the database. Default `rally`. Made where it is not there. */
  readonly schema?: string
  /** How many connections to open at most, besides the one that listens. Default 10. With a pool, the pool says. */
  readonly connections?: number
}

/**
 * A store in PostgreSQL 15 or later, for all instances that are given the same database. A URL needs the package pg. A pool stays
 * yours to end, and one of its connections is kept to listen on. Nothing is connected before something is asked of it.
 */
export function postgres(target: string | PoolLike, options: PostgresOptions = {}): Store {
  const database = new Database(poolFor(target, options), schemaOf(options))
  const listening = new Listening(database)
  const once = new PostgresOnceStore(database)
  const mailbox = new PostgresMailbox(database, listening)
  const tasks = new PostgresTasks(database, listening, [once, mailbox])
  return {
    tasks,
    once,
    mailbox,
    async close() {
      listening.close()
      await database.close()
    },
  }
}

const LONGEST_SCHEMA = 48
const SCHEMA = new RegExp(`^[A-Za-z_][A-Za-z0-9_]{0,${LONGEST_SCHEMA - 1}}$`)

function schemaOf({ schema = 'rally' }: PostgresOptions): string {
  if (typeof schema === 'string' && SCHEMA.test(schema) && !/^pg_/i.test(schema)) return schema
  throw new RallyError(
    'OPTION_INVALID',
    `\`schema\` must be a name of letters, digits and underscores, at most ${LONGEST_SCHEMA} of them, ` +
      'that begins neither with a digit nor with "pg_".',
  )
}

function poolFor(target: unknown, { connections }: PostgresOptions): ConstructorParameters<typeof Database>[0] {
  if (typeof target === 'string') return urlPool(target, connections ?? 10)
  if (!isPool(target))
    throw new RallyError(
      'OPTION_INVALID',
      'postgres() takes a URL, postgres://..., or a Pool of pg. Is its variable set?',
    )
  if (connections !== undefined)
    throw new RallyError('OPTION_INVALID', '`connections` goes with a URL: a pool has a size of its own.')
  // One of them is kept to listen on.
  const most = (target as { options?: { max?: unknown } }).options?.max
  if (typeof most === 'number' && most < 2)
    throw new RallyError('OPTION_INVALID', `The pool has room for ${most} connection, and the store needs at least 2.`)
  return target
}

function urlPool(url: string, connections: number): () => ReturnType<typeof makePool> {
  // The URL may hold a password: it is not repeated.
  if (!/^postgres(ql)?:\/\//.test(url))
    throw new RallyError('OPTION_INVALID', 'The URL of a PostgreSQL database begins with postgres:// or postgresql://.')
  if (!Number.isInteger(connections) || connections < 1)
    throw new RallyError(
      'OPTION_INVALID',
      `\`connections\` must be a whole number of at least 1, and is ${connections}.`,
    )
  return () => makePool(url, connections)
}

function isPool(target: unknown): target is PoolLike {
  const pool = target as Partial<PoolLike> | null | undefined
  return typeof pool?.query === 'function' && typeof pool.connect === 'function' && typeof pool.on === 'function'
}
