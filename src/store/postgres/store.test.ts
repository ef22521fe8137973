import { expect, test } from 'vitest'
import { postgres, type PostgresOptions } from './store.ts'
import type { PoolLike } from './pool.ts'

const URL_WITH_PASSWORD = 'postgres://user:secret@127.0.0.1:1/none'

const pool = (max?: number): PoolLike & { options?: object } => ({
  query: () => Promise.reject(new Error('No query is expected here.')),
  connect: () => Promise.reject(new Error('No query is expected here.')),
  on: () => {},
  removeListener: () => {},
  ...(max !== undefined && { options: { max } }),
})

test.each<{ what: string; target: unknown; options?: PostgresOptions; says: RegExp }>([
  { what: 'no target', target: undefined, says: /Is the environment variable set/ },
  { what: 'null', target: null, says: /Is the environment variable set/ },
  { what: 'an empty URL', target: '', says: /must start with postgres:\/\// },
  { what: 'a URL of something else', target: 'mysql://user:secret@host/db', says: /must start with postgres:\/\// },
  { what: 'an object that is no pool', target: { query: () => {} }, says: /a Pool of pg/ },
  { what: 'a pool of one', target: pool(1), says: /at least 2 connections, got 1/ },
  {
    what: 'connections with a pool',
    target: pool(),
    options: { connections: 3 },
    says: /Set the size of your pool with its own option/,
  },
  { what: 'no connections', target: URL_WITH_PASSWORD, options: { connections: 0 }, says: /at least 1, got 0/ },
  {
    what: 'another notify',
    target: URL_WITH_PASSWORD,
    options: { notify: 'push' as 'poll' },
    says: /'listen' or 'poll', got "push"/,
  },
  { what: 'half a connection', target: URL_WITH_PASSWORD, options: { connections: 1.5 }, says: /whole number/ },
])('$what is refused at once, without a word of a password', ({ target, options, says }) => {
  const make = (): unknown => postgres(target as string, options)
  expect(make).toThrow(expect.objectContaining({ code: 'OPTION_INVALID', message: expect.stringMatching(says) }))
  expect(make).not.toThrow(/secret/)
})

test.each(['', '1st', 'a-b', 'a b', 'a"; DROP TABLE tasks; --', 'pg_mine', 'PG_mine', 'x'.repeat(49), '\u00e4'])(
  'the schema "%s" is refused',
  (schema) => {
    expect(() => postgres(URL_WITH_PASSWORD, { schema })).toThrow(/`schema` must be a name/)
  },
)

test.each(['rally', 'Rally_2', '_', 'x'.repeat(48)])('the schema "%s" is taken', async (schema) => {
  await postgres(URL_WITH_PASSWORD, { schema }).close()
  await postgres(pool(2), { schema }).close()
})

test('a pool of one is enough for a store that polls', async () => {
  await postgres(pool(1), { notify: 'poll' }).close()
})
