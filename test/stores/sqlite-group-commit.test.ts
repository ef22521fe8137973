// Group commit. The numbers are those of the invariants in src/store/sqlite/group-commit.ts.
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { SqliteDatabase } from '../../src/store/sqlite/driver.ts'
import { openDatabase } from '../../src/store/sqlite/driver.ts'
import { GroupCommit } from '../../src/store/sqlite/group-commit.ts'
import { Folder } from './folder.ts'

let folder: Folder
let database: SqliteDatabase
let other: SqliteDatabase
let commits: GroupCommit
/** What was executed beside the writes themselves. */
let executed: string[]

beforeEach(() => {
  folder = new Folder()
  database = openDatabase(folder.file(), { synchronous: 'full' })
  other = openDatabase(folder.file(), { synchronous: 'full' })
  // A row without its owner fails the commit, and not the statement.
  database.exec(`PRAGMA foreign_keys = on;
    CREATE TABLE owner (id INTEGER PRIMARY KEY);
    CREATE TABLE note (text TEXT PRIMARY KEY, owner INTEGER REFERENCES owner DEFERRABLE INITIALLY DEFERRED)`)
  executed = []
  commits = new GroupCommit({
    get inTransaction() {
      return database.inTransaction
    },
    exec: (sql) => {
      executed.push(sql)
      return database.exec(sql)
    },
    prepare: (sql) => database.prepare(sql),
    close: () => {},
  })
})
afterEach(() => {
  database.close()
  other.close()
  folder.remove()
})

const note = (text: string, owner: number | null = null): number =>
  database.prepare('INSERT INTO note VALUES (?, ?)').run([text, owner]).changes

const notes = (by = other): string[] =>
  (by.prepare('SELECT text FROM note ORDER BY text').all([]) as { text: string }[]).map(({ text }) => text)

test('what is written in one turn is one transaction, and is there for others when its promise resolves (1)', async () => {
  const seen: string[][] = []
  const writes = ['a', 'b', 'c'].map(async (text) => {
    expect(await commits.write(() => note(text))).toBe(1)
    seen.push(notes())
  })
  expect(notes()).toEqual([])
  await Promise.all(writes)
  expect(executed).toEqual(['BEGIN IMMEDIATE', 'COMMIT'])
  expect(seen).toEqual([
    ['a', 'b', 'c'],
    ['a', 'b', 'c'],
    ['a', 'b', 'c'],
  ])
})

test('what is written in the next turn is another one', async () => {
  await commits.write(() => note('a'))
  await commits.write(() => note('b'))
  expect(executed).toEqual(['BEGIN IMMEDIATE', 'COMMIT', 'BEGIN IMMEDIATE', 'COMMIT'])
})

test('a lone writer does not wait for the turn of the event loop to end, until others write too', async () => {
  const waitsForTurn = async (text: string): Promise<boolean> => {
    let hasTurned = false
    setImmediate(() => (hasTurned = true))
    await commits.write(() => note(text))
    return hasTurned
  }
  const waits: boolean[] = []
  for (let i = 0; i < 9; i += 1) waits.push(await waitsForTurn(`alone ${i}`))
  expect(waits).toEqual([true, true, true, true, true, true, true, true, false])
  // After some milliseconds without a turn, others may write, and timers are due.
  for (const since = performance.now(); performance.now() - since < 5;);
  expect(await waitsForTurn('after a while')).toBe(true)
  expect(await waitsForTurn('alone again')).toBe(false)

  executed = []
  await Promise.all([commits.write(() => note('together a')), commits.write(() => note('together b'))])
  expect(executed).toEqual(['BEGIN IMMEDIATE', 'COMMIT'])
  expect(await waitsForTurn('after the others')).toBe(true)
})

test('each write sees those that were asked for before it (2)', async () => {
  const counts = await Promise.all(
    ['a', 'b', 'c'].map((text) =>
      commits.write(() => {
        note(text)
        return notes(database).length
      }),
    ),
  )
  expect(counts).toEqual([1, 2, 3])
})

test('very many writes are more than one transaction, and come in their order', async () => {
  const texts = Array.from({ length: 1_200 }, (_, i) => String(i).padStart(4, '0'))
  let order = 0
  const orders = await Promise.all(texts.map((text) => commits.write(() => note(text) && (order += 1))))
  expect(orders).toEqual(texts.map((_, i) => i + 1))
  expect(notes()).toEqual(texts)
  expect(executed.filter((sql) => sql === 'COMMIT').length).toBeGreaterThan(1)
})

test('a write that fails takes no other one with it, and nothing of it stays (3)', async () => {
  const settled = await Promise.allSettled([
    commits.write(() => note('a')),
    commits.write(() => {
      note('half')
      note('a')
    }),
    commits.write(() => note('b')),
    commits.write(() => {
      throw new TypeError('Not even tried.')
    }),
    commits.write(() => note('c')),
  ])
  expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled'])
  expect(settled[1]).toMatchObject({ reason: { code: 'STORE_FAILED', message: expect.stringContaining('UNIQUE') } })
  expect(settled[3]).toMatchObject({ reason: { cause: new TypeError('Not even tried.') } })
  expect(notes()).toEqual(['a', 'b', 'c'])
  await commits.write(() => note('d'))
  expect(notes()).toContain('d')
})

test('a commit that fails fails all that was to be written, and is not tried again (4)', async () => {
  const settled = await Promise.allSettled([commits.write(() => note('a')), commits.write(() => note('orphan', 7))])
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(executed).toEqual(['BEGIN IMMEDIATE', 'COMMIT', 'ROLLBACK'])
  expect(notes()).toEqual([])
  await commits.write(() => note('b'))
  expect(notes()).toEqual(['b'])
})

test('while another process writes, the event loop goes on and the writes wait', async () => {
  other.exec('BEGIN IMMEDIATE')
  const written = commits.write(() => note('a'))
  while (executed.length < 2) await new Promise((resolve) => setImmediate(resolve))
  const later = commits.write(() => note('b'))
  other.exec('COMMIT')
  await Promise.all([written, later])
  expect(notes()).toEqual(['a', 'b'])
})

test('who closes it waits for what is to be written, and then it takes nothing more', async () => {
  const written = commits.write(() => note('a'))
  await commits.close()
  expect(notes()).toEqual(['a'])
  expect(await written).toBe(1)
  await expect(commits.write(() => note('b'))).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  await expect(commits.read(() => notes())).rejects.toMatchObject({ code: 'STORE_CLOSED' })
})

test('a read that fails says that the store did', async () => {
  await expect(commits.read(() => database.prepare('SELECT * FROM nobody').all([]))).rejects.toMatchObject({
    code: 'STORE_FAILED',
    message: 'SQLite failed: no such table: nobody',
  })
})
