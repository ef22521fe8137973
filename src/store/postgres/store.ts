// A store in PostgreSQL, which a fleet of instances can share.
import { atCaller, RallyError } from '../../protocol/errors.ts'
import type { Store } from '../store.ts'
import { PostgresDatabase } from './database.ts'
import { Listener } from './listener.ts'
import { PostgresMailbox } from './mailbox.ts'
import { PostgresOnceStore } from './once.ts'
import { createPool, type NotifyMode, type PoolLike } from './pool.ts'
import { PostgresTasks } from './tasks.ts'

/** Options of `postgres()`. */
export interface PostgresOptions {
  /** The schema of the tables in the database. It is created if it does not exist. Default `rally`. */
  readonly schema?: string
  /** The most connections to open, not counting the one that listens for events. Only with a URL. Default 10. */
  readonly connections?: number
  /**
   * How instances learn of each other's changes. `listen`: at once, with LISTEN and NOTIFY. `poll`: they look for them, for tasks that
   * are due every second, for changes of a task that a client follows every 5 seconds. Then the store uses nothing but ordinary
   * statements without names, so it works behind PgBouncer in transaction mode. Default `listen`.
   */
  readonly notify?: 'listen' | 'poll'
}

/**
 * A store in PostgreSQL 15 or later, for all instances that use the same database. Pass a URL, which needs the package pg, or a pool.
 * You end your own pool yourself; the store uses one of its connections to listen for events, unless `notify` is `poll`. It connects
 * with the first query.
 *
 * @example
 * const app = rally({ name: 'cloud', version: '1.0.0', store: postgres('postgres://127.0.0.1/rally') })
 */
export function postgres(target: string | PoolLike, options: PostgresOptions = {}): Store {
  const database = atCaller(
    postgres,
    () => new PostgresDatabase(poolFor(target, options), schemaOf(options), notifyOf(options)),
  )
  return storeOn(database)
}

/**
 * The store whose tables are in this database, for operations. Creates nothing and upgrades nothing. It uses ordinary statements only, so
 * that it works behind any pooler; workers find what it makes due within two seconds.
 */
export function existingPostgres(url: string, options: Pick<PostgresOptions, 'schema'> = {}): Store {
  const pool = poolFor(url, { connections: 2, notify: 'poll' })
  return storeOn(new PostgresDatabase(pool, schemaOf(options), 'poll', true))
}

function storeOn(database: PostgresDatabase): Store {
  const listener = new Listener(database)
  const once = new PostgresOnceStore(database)
  const mailbox = new PostgresMailbox(database, listener)
  const tasks = new PostgresTasks(database, listener, [once, mailbox])
  return {
    tasks,
    once,
    mailbox,
    async close() {
      await listener.close()
      await database.close()
    },
  }
}

const MAX_SCHEMA_LENGTH = 48
const SCHEMA = new RegExp(`^[A-Za-z_][A-Za-z0-9_]{0,${MAX_SCHEMA_LENGTH - 1}}$`)

function schemaOf({ schema = 'rally' }: PostgresOptions): string {
  if (typeof schema === 'string' && SCHEMA.test(schema) && !/^pg_/i.test(schema)) return schema
  throw new RallyError(
    'OPTION_INVALID',
    `postgres(): \`schema\` must be a name of at most ${MAX_SCHEMA_LENGTH} letters, digits and underscores that starts ` +
      `neither with a digit nor with "pg_", got ${JSON.stringify(schema)}.`,
  )
}

function notifyOf({ notify = 'listen' }: PostgresOptions): NotifyMode {
  if (notify === 'listen' || notify === 'poll') return notify
  throw new RallyError(
    'OPTION_INVALID',
    `postgres(): \`notify\` must be 'listen' or 'poll', got ${JSON.stringify(notify)}.`,
  )
}

function poolFor(
  target: unknown,
  { connections, notify }: PostgresOptions,
): ConstructorParameters<typeof PostgresDatabase>[0] {
  if (typeof target === 'string') return urlPool(target, connections ?? 10, notify ?? 'listen')
  if (!isPool(target)) {
    const got = target === null ? 'null' : typeof target
    throw new RallyError(
      'OPTION_INVALID',
      `postgres(): the first argument must be a URL (postgres://...) or a Pool of pg, got ${got}. Is the environment variable set?`,
    )
  }
  if (connections !== undefined) {
    throw new RallyError(
      'OPTION_INVALID',
      'postgres(): `connections` can only be used with a URL. Set the size of your pool with its own option `max`.',
    )
  }
  // The store keeps one connection to listen on, and needs another for queries.
  const max = (target as { options?: { max?: unknown } }).options?.max
  if (typeof max === 'number' && max < 2 && notify !== 'poll') {
    throw new RallyError(
      'OPTION_INVALID',
      `postgres(): the pool must allow at least 2 connections, got ${max}. Raise \`max\`.`,
    )
  }
  return target
}

function urlPool(url: string, connections: number, notify: NotifyMode): () => ReturnType<typeof createPool> {
  // The error does not repeat the URL, which may contain a password.
  if (!/^postgres(ql)?:\/\//.test(url)) {
    throw new RallyError(
      'OPTION_INVALID',
      'postgres(): the URL must start with postgres:// or postgresql://. Is the environment variable set?',
    )
  }
  if (!Number.isInteger(connections) || connections < 1) {
    throw new RallyError(
      'OPTION_INVALID',
      `postgres(): \`connections\` must be a whole number of at least 1, got ${connections}.`,
    )
  }
  // One more listens for events.
  return () => createPool(url, notify === 'poll' ? connections : connections + 1, notify)
}

function isPool(target: unknown): target is PoolLike {
  const pool = target as Partial<PoolLike> | null | undefined
  return typeof pool?.query === 'function' && typeof pool.connect === 'function' && typeof pool.on === 'function'
}
