// Several processes with one file, and what a killed one leaves behind.
import { sqlite } from 'mcp-rally/sqlite'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { openDatabase } from '../../src/store/sqlite/driver.ts'
import { Process } from '../drain/process.ts'
import { newTask } from './contract.ts'
import { Folder } from './folder.ts'

interface Said {
  opened?: string
  made?: string
  appended?: string
  entry?: number
  parked?: string
  taken?: string[]
  watching?: boolean
  news?: { type: string; id?: string; version?: number }
}

// Processes take their time to start on a busy machine.
vi.setConfig({ testTimeout: 90_000 })

const MODULE = new URL('./sqlite-process.mjs', import.meta.url)

let folder: Folder
let processes: Process<Said>[]

beforeEach(() => {
  folder = new Folder()
  processes = []
})
afterEach(async () => {
  await Promise.all(processes.map((each) => each.kill()))
  folder.remove()
})

function start(role: string, name = ''): Process<Said> {
  const started = new Process<Said>(MODULE, { file: folder.file(), role, name })
  processes.push(started)
  return started
}

test('what was acknowledged is there after the process was killed in the middle of its writes, again and again', async () => {
  const heard: Said[] = []
  for (const name of ['one', 'two', 'three']) {
    const writer = start('write', name)
    await writer.until(({ parked }) => parked?.endsWith('-5') ?? false)
    writer.signal('SIGKILL')
    expect(await writer.ended).toEqual({ code: null, signal: 'SIGKILL' })
    heard.push(...writer.heard)
  }

  const store = sqlite(folder.file())
  for (const { made } of heard.filter((said) => said.made !== undefined)) {
    expect(await store.tasks.read(made ?? '')).toMatchObject({ id: made })
    expect(await store.mailbox.after(made ?? '', 0)).toHaveLength(1)
  }
  for (const { parked } of heard.filter((said) => said.parked !== undefined)) {
    expect(await store.tasks.read(parked ?? '')).toMatchObject({ message: 'parked' })
    await store.tasks.change(parked ?? '', {}, { dueMs: 0 })
  }
  const journals = new Map<string, string>()
  for (;;) {
    const task = await store.tasks.claim({ after: '', leaseMs: 600_000 })
    if (task === undefined) break
    journals.set(task.id, task.journal)
  }
  const parked = heard.flatMap((said) => said.parked ?? [])
  expect(parked.length).toBeGreaterThanOrEqual(18)
  expect(new Set(parked.map((id) => journals.get(id)))).toEqual(new Set(['["first",0,1,2,3,4]']))
  await store.close()

  const database = openDatabase(folder.file(), { synchronous: 'full' })
  const entries = database.prepare(
    'SELECT 1 FROM rally_task_entry JOIN rally_task ON task = seq WHERE id = ? AND text = ?',
  )
  // Those of tasks too that were still held when their process was killed.
  for (const { appended, entry } of heard.filter((said) => said.appended !== undefined)) {
    expect(entries.all([appended ?? '', String(entry)])).toHaveLength(1)
  }
  expect(database.prepare('PRAGMA integrity_check').all([])).toEqual([{ integrity_check: 'ok' }])
  database.close()
})

test('many processes may open the same new file at once', async () => {
  const names = ['one', 'two', 'three', 'four']
  const opening = names.map((name) => start('open', name))
  expect(await Promise.all(opening.map(({ ended }) => ended))).toEqual(names.map(() => ({ code: 0, signal: null })))
  const owners = new Set(opening.flatMap(({ heard }) => heard.map(({ opened }) => opened)))
  expect([...owners]).toEqual([expect.toBeOneOf(names)])
})

test('of many processes that claim at once no two get the same task', async () => {
  const store = sqlite(folder.file(), { synchronous: 'normal' })
  const ids = Array.from({ length: 300 }, (_, i) => `t${i}`)
  await Promise.all(ids.map((id, i) => store.tasks.create(newTask(id, { owner: `owner ${i % 7}` }))))
  const claiming = ['one', 'two', 'three'].map((name) => start('claim', name))
  const taken = await Promise.all(claiming.map((each) => each.until((said) => said.taken !== undefined)))
  expect(taken.flatMap((said) => said.taken ?? []).toSorted()).toEqual(ids.toSorted())
  await store.close()
})

test('news reach other processes, and who only watches is not kept alive by it', async () => {
  const store = sqlite(folder.file())
  const watcher = start('watch')
  await watcher.until((said) => said.watching === true)
  await store.tasks.create(newTask('t'))
  await watcher.until((said) => said.news?.type === 'due')
  const version = await store.tasks.change('t', {}, { message: 'Hello.' })
  await watcher.until(({ news }) => news?.type === 'changed' && news.id === 't' && news.version === version)
  await store.mailbox.leave('box', 1, 'letter', 60_000)
  await watcher.until((said) => said.news?.type === 'letter')
  watcher.tell({ stop: true })
  expect(await watcher.ended).toEqual({ code: 0, signal: null })
  await store.close()
})
