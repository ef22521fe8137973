import { chmodSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { sqlite } from 'mcp-rally/sqlite'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { SqliteDatabase } from '../../src/store/sqlite/driver.ts'
import { openDatabase } from '../../src/store/sqlite/driver.ts'
import { UPGRADES, upgrade } from '../../src/store/sqlite/schema.ts'
import { newTask } from './contract.ts'
import { Folder } from './folder.ts'

let folder: Folder

beforeEach(() => {
  folder = new Folder()
})
afterEach(() => folder.remove())

function open(): SqliteDatabase {
  return openDatabase(folder.file(), { synchronous: 'full' })
}

function valueOf(database: SqliteDatabase, sql: string): unknown {
  return Object.values(database.prepare(sql).all([])[0] ?? {})[0]
}

function tables(database: SqliteDatabase): unknown[] {
  return database.prepare(`SELECT name, sql FROM sqlite_schema WHERE name LIKE 'rally%' ORDER BY name`).all([])
}

describe('the file', () => {
  test('is made, and what is in it is there when it is opened again', async () => {
    const first = sqlite(folder.file())
    const task = await first.tasks.create(newTask('t'))
    await first.mailbox.leave('box', 1, 'letter', 60_000)
    await first.close()
    const second = sqlite(folder.file())
    expect(await second.tasks.read('t')).toEqual(task)
    expect(await second.mailbox.after('box', 0)).toEqual([{ number: 1, text: 'letter' }])
    await second.close()
  })

  test('and those beside it are for their owner alone', async () => {
    const store = sqlite(folder.file())
    await store.tasks.create(newTask('t'))
    const modes = ['', '-wal', '-shm'].map((end) => statSync(folder.file() + end).mode & 0o777)
    expect(modes).toEqual([0o600, 0o600, 0o600])
    await store.close()
  })

  test.each(['deleted', 'replaced'])(
    'that is %s while it is open is noticed, and works again when it is back',
    async (how) => {
      vi.useFakeTimers({ toFake: ['performance'] })
      const store = sqlite(folder.file())
      const id = 't'
      await store.tasks.create(newTask(id))
      renameSync(folder.file(), `${folder.file()}.moved`)
      if (how === 'replaced') writeFileSync(folder.file(), '')
      // Looked at once a second at the most.
      expect(await store.tasks.read(id)).toMatchObject({ id })
      vi.advanceTimersByTime(1_000)
      const changed = {
        code: 'STORE_FILE_CHANGED',
        message:
          `SQLite: the file ${folder.file()} was deleted or replaced while the store had it open. ` +
          'Put the file back, or restart this process to use what is there now.',
      }
      await expect(store.tasks.read(id)).rejects.toMatchObject(changed)
      await expect(store.tasks.create(newTask('u'))).rejects.toMatchObject(changed)
      await expect(store.once.claim('k', 'n', 1)).rejects.toMatchObject(changed)
      await expect(store.mailbox.leave('c', 1, 'x', 1_000)).rejects.toMatchObject(changed)
      renameSync(`${folder.file()}.moved`, folder.file())
      vi.advanceTimersByTime(1_000)
      expect(await store.tasks.read('u')).toBeUndefined()
      expect(await store.tasks.read(id)).toMatchObject({ id })
      await store.close()
      vi.useRealTimers()
    },
  )

  test('that is there already keeps the mode that somebody gave it', async () => {
    writeFileSync(folder.file(), '')
    chmodSync(folder.file(), 0o640)
    await sqlite(folder.file()).close()
    expect(statSync(folder.file()).mode & 0o777).toBe(0o640)
  })

  test.each([
    { path: '', message: 'the path must be that of a file, or ":memory:", got ""' },
    { path: 'https://example.com/db', message: 'must be that of a file, or ":memory:", got "https://example.com/db"' },
    { path: 'libsql://example.com', message: 'the path must be that of a file' },
    { path: 'ws://example.com', message: 'the path must be that of a file' },
  ])('is no address: "$path"', ({ path, message }) => {
    expect(() => sqlite(path)).toThrow(
      expect.objectContaining({ code: 'STORE_PATH', message: expect.stringContaining(message) }),
    )
  })

  test('in a folder that is not there is an error that says so', () => {
    expect(() => sqlite(folder.file('no/store.db'))).toThrow(
      expect.objectContaining({ code: 'STORE_PATH', message: expect.stringContaining('Check that its folder exists') }),
    )
  })

  test('that is something else is an error', () => {
    writeFileSync(folder.file(), 'Dear diary, '.repeat(1_000))
    expect(() => sqlite(folder.file())).toThrow(expect.objectContaining({ code: 'STORE_FAILED' }))
  })

  test('is written through to the disk on every commit, unless it is to be faster', () => {
    const [FULL, NORMAL] = [2, 1]
    for (const [synchronous, level] of [
      ['full', FULL],
      ['normal', NORMAL],
    ] as const) {
      const database = openDatabase(folder.file(), { synchronous })
      expect(valueOf(database, 'PRAGMA synchronous')).toBe(level)
      expect(valueOf(database, 'PRAGMA journal_mode')).toBe('wal')
      database.close()
    }
  })

  test('may be in memory, for as long as the store is open', async () => {
    const [one, other] = [sqlite(':memory:'), sqlite(':memory:')]
    await one.tasks.create(newTask('t'))
    expect(await one.tasks.read('t')).toMatchObject({ id: 't' })
    expect(await other.tasks.read('t')).toBeUndefined()
    await one.close()
    await other.close()
  })
})

describe('the schema', () => {
  test.each(UPGRADES.map((_, version) => ({ version })))(
    'of version $version is brought up to date, with what is in it',
    async ({ version }) => {
      const old = open()
      upgrade(old, UPGRADES.slice(0, version))
      if (version > 0)
        // Files of earlier releases do not have these columns and their indexes.
        old.exec(`
        DROP INDEX rally_task_wanted;
        DROP INDEX rally_task_place;
        ALTER TABLE rally_task DROP COLUMN claimed_by;
        ALTER TABLE rally_task DROP COLUMN group_name;
        ALTER TABLE rally_task DROP COLUMN group_limit;
        ALTER TABLE rally_task DROP COLUMN wanted_at;
        INSERT INTO rally_task VALUES (1, 't', 'ada', 'working', NULL, 500, NULL, 1000, 1000, NULL, 3, 2, NULL, 1000, 1, 1);
        UPDATE rally_count SET changes = 3, claims = 2;
        INSERT INTO rally_task_text VALUES (1, '"request"', '"state"', NULL);
        INSERT INTO rally_task_entry VALUES (1, 1, '1'), (1, 2, '2');
      `)
      old.close()

      const store = sqlite(folder.file())
      const task = await store.tasks.claim({ after: '', leaseMs: 60_000 })
      expect(task === undefined ? 0 : [task.id, task.journal, task.fence]).toEqual(
        version === 0 ? 0 : ['t', '[1,2]', 3],
      )
      expect(await store.once.claim('k', 'note', 60_000)).toMatchObject({ kind: 'yours' })
      expect(await store.mailbox.leave('box', 1, 'letter', 60_000)).toBe(true)
      await store.close()

      const [upgraded, made] = [open(), openDatabase(':memory:', { synchronous: 'full' })]
      upgrade(made)
      expect(tables(upgraded)).toEqual(tables(made))
      expect(valueOf(upgraded, 'SELECT version FROM rally_schema')).toBe(UPGRADES.length)
      upgraded.close()
      made.close()
    },
  )

  test('of a newer version is refused and left as it is, and the error says what to do', () => {
    const newer = open()
    upgrade(newer, [...UPGRADES, 'CREATE TABLE rally_next (id TEXT)'])
    const before = tables(newer)
    newer.close()
    expect(() => sqlite(folder.file())).toThrow(
      expect.objectContaining({
        code: 'STORE_SCHEMA',
        message: expect.stringMatching(
          /has schema version 4, .* up to 3\. Use the mcp-rally that wrote it, or a newer one/,
        ),
      }),
    )
    const after = open()
    expect(tables(after)).toEqual(before)
    after.close()
  })

  test('that cannot be upgraded is left as it was', () => {
    const database = open()
    upgrade(database, UPGRADES.slice(0, 1))
    const before = tables(database)
    expect(() => upgrade(database, [...UPGRADES.slice(0, 2), 'CREATE TABLE nonsense'])).toThrow('incomplete input')
    expect(tables(database)).toEqual(before)
    expect(valueOf(database, 'SELECT version FROM rally_schema')).toBe(1)
    database.close()
  })
})

describe('a store that is closed', () => {
  test('has written what it was asked to, and takes nothing more', async () => {
    const store = sqlite(folder.file())
    const making = store.tasks.create(newTask('t'))
    await Promise.all([store.close(), store.close()])
    expect(await making).toMatchObject({ id: 't' })
    const closed = { code: 'STORE_CLOSED' }
    await expect(store.tasks.read('t')).rejects.toMatchObject(closed)
    await expect(store.tasks.create(newTask('u'))).rejects.toMatchObject(closed)
    await expect(store.once.claim('k', 'n', 1_000)).rejects.toMatchObject(closed)
    await expect(store.mailbox.after('box', 0)).rejects.toMatchObject(closed)
  })
})

describe('looking for what other processes wrote', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
  afterEach(() => void vi.useRealTimers())

  test('goes on only while somebody watches', async () => {
    const store = sqlite(folder.file())
    expect(vi.getTimerCount()).toBe(0)
    const stops = [store.tasks.watch(() => {}), store.tasks.watch(() => {}), store.mailbox.watch('box', () => {})]
    expect(vi.getTimerCount()).toBe(1)
    for (const stop of stops) {
      expect(vi.getTimerCount()).toBe(1)
      stop()
    }
    expect(vi.getTimerCount()).toBe(0)
    await store.close()
  })

  test('ends with the store, also for those that still watch', async () => {
    const store = sqlite(folder.file())
    const stops = [store.tasks.watch(() => {}), store.mailbox.watch('box', () => {})]
    await store.close()
    expect(vi.getTimerCount()).toBe(0)
    for (const stop of stops) stop()
  })
})

test('what is wrong with a journal is said before anything is written', async () => {
  const store = sqlite(':memory:')
  await expect(store.tasks.create(newTask('t', { journal: '1,2' }))).rejects.toMatchObject({ code: 'STORE_JOURNAL' })
  expect(await store.tasks.read('t')).toBeUndefined()
  await store.close()
})
