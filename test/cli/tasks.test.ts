// rally tasks: the tasks of a store in a terminal, without the app that made them.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CommanderError } from 'commander'
import { sqlite } from 'mcp-rally/sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { NewTask } from '../../src/store/tasks.ts'
import { TaskOperations } from '../../src/tasks/operations.ts'
import { newTask } from '../stores/contract/hands.ts'
import { openConsole } from '../../src/cli/console.ts'
import { exitCodeOf, whyOf } from '../../src/cli/exit.ts'
import { runProgram } from '../../src/cli/program.ts'
import { folder, rally } from './cli.ts'
import { Terminal } from './terminal.ts'

const THIS_FILE = fileURLToPath(import.meta.url)
const WORKER = fileURLToPath(new URL('./tasks-worker.mjs', import.meta.url))

/** Starts a process of the app. Resolves with its address once it serves. */
async function startWorker(
  file: string,
  world: string,
  name: string,
): Promise<{ url: string; gone: Promise<unknown> }> {
  const child = spawn(process.execPath, [WORKER, file, world, name], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const gone = once(child, 'exit')
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return { url: line.toString().trim(), gone }
}

interface Listed {
  readonly tasks: readonly { readonly id: string; readonly outcome?: string; readonly status: string }[]
  readonly next?: string
}

async function listed(file: string, ...options: string[]): Promise<Listed> {
  const { stdout, stderr, code } = await rally(['tasks', '--store', file, '--json', ...options])
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as Listed
}

/** Waits until the newest task has ended. */
async function outcome(file: string): Promise<{ id: string; outcome: string }> {
  const store = sqlite(file, { synchronous: 'normal', pollMs: 10 })
  const operations = new TaskOperations(store.tasks)
  const waiting: (() => void)[] = []
  store.tasks.watch(() => {
    for (const resolve of waiting.splice(0)) resolve()
  })
  try {
    for (;;) {
      const next = new Promise<void>((resolve) => void waiting.push(resolve))
      const [task] = (await operations.list({ limit: 1 })).tasks
      if (task?.outcome !== undefined) return { id: task.id, outcome: task.outcome }
      await next
    }
  } finally {
    await store.close()
  }
}

test('a task is killed, fails, is retried from its third step and finishes, and the terminal shows it all', async () => {
  const world = await folder()
  const file = join(world, 'tasks.db')
  for (const name of ['kills-charge', 'fails-ship']) writeFileSync(join(world, name), '')
  const first = await startWorker(file, world, 'web-1')
  const { stdout: id } = await rally(['call', first.url, 'order', '--detach', '--json'])
  expect(id).not.toBe('')
  await first.gone
  await startWorker(file, world, 'web-2')
  const failed = await outcome(file)
  expect(failed.outcome).toBe('error')

  const seen = new Terminal(['tasks', 'show', failed.id.slice(0, 12), '--store', file])
  expect(await seen.ended).toBe(0)
  expect(seen.text).toMatch(/^claim web-1 +─+ +lost, /m)
  expect(seen.text).toMatch(/^step {2}reserve +█+ +completed, /m)
  expect(seen.text).toMatch(/^claim web-2 +─+ +ended, /m)
  expect(seen.text).toMatch(/^step {2}ship +█+ +failed, /m)
  expect(seen.text).toMatch(/^ {6}Error: ship: the carrier is \\x1b\]0;owned\\x07 down/m)
  expect(seen.text).toMatch(/^can be retried {2}yes$/m)
  // Payloads are shown only if that is wished.
  expect(seen.text).not.toContain('4242')

  rmSync(join(world, 'fails-ship'))
  const retry = await rally(['tasks', 'retry', failed.id, '--from', 'pack', '--store', file])
  expect(retry).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Retried as [0-9a-f]{64}\n$/) })
  const retried = await outcome(file)
  expect(retried).toEqual({ id: retry.stdout.slice('Retried as '.length).trim(), outcome: 'ok' })

  const finished = new Terminal(['tasks', 'show', retried.id, '--store', file])
  expect(await finished.ended).toBe(0)
  const rows = finished.text
    .split('\n')
    .flatMap((line) => /^(claim|step|retry|end) +((?!of )\S+)/.exec(line)?.slice(1, 3).join(' ') ?? [])
  expect(rows).toEqual([
    'claim web-1',
    'step reserve',
    'claim web-2',
    'step charge',
    'step pack',
    'step label',
    'step ship',
    'retry pack',
    'claim web-2',
    'step pack',
    'step label',
    'step ship',
    'end ■',
  ])
  expect(finished.text).toMatch(/^state {11}ok \(completed\)$/m)
  expect(finished.text).toMatch(new RegExp(`^retry of {8}${failed.id}$`, 'm'))

  const log = readFileSync(join(world, 'log'), 'utf8').trim().split('\n')
  expect(log.map((line) => line.split(' ')[0])).toEqual([
    'reserve',
    'charge',
    'charge',
    'pack',
    'label',
    'ship',
    'pack',
    'label',
    'ship',
  ])
  // Every step has one idempotency key, in all attempts and in both tasks.
  expect(new Set(log).size).toBe(5)
}, 60_000)

const OWNED = 'evil \u001B]0;owned\u0007\u202E'

function storedTask(id: string, tool: string, given: Partial<NewTask> = {}): NewTask {
  const request = { tool, args: {}, flowId: id, startedAt: 0, round: 0, revision: '', declared: 0, can: 0 }
  const state = { version: undefined, carry: undefined, passes: 0, shown: {}, wires: {}, answers: {} }
  return newTask(id.padEnd(64, '0'), {
    owner: '',
    request: JSON.stringify(request),
    state: JSON.stringify(state),
    ...given,
  })
}

/** A file with these tasks. */
async function stored(...tasks: NewTask[]): Promise<string> {
  const file = join(await folder(), 'tasks.db')
  const store = sqlite(file, { synchronous: 'normal' })
  for (const task of tasks) await store.tasks.create(task)
  await store.close()
  return file
}

describe('the list', () => {
  test('is a table that fits the terminal, and shows control characters as text', async () => {
    const tool = `${OWNED} a tool with a name that is much longer than anybody needs`
    const file = await stored(storedTask('a1', 'deploy'), storedTask('b2', tool, { message: OWNED.repeat(20) }))
    for (const columns of [100, 60, 30]) {
      const terminal = new Terminal(['tasks'], { RALLY_STORE: file }, columns)
      expect(await terminal.ended).toBe(0)
      const lines = terminal.text.split('\n')
      expect(lines).toHaveLength(3)
      expect(lines.every((line) => line.length <= columns)).toBe(true)
      expect(lines[0]).toMatch(/^ID +STATE/)
      expect(lines[1]).toMatch(/^b20000000000 {2}working/)
      expect(terminal.raw).not.toContain('\u001B]0;')
      expect(terminal.raw).not.toContain('\u202E')
    }
  })

  test('has pages, and is JSON for scripts', async () => {
    const file = await stored(...['a1', 'b2', 'c3'].map((id) => storedTask(id, OWNED)))
    const { stdout, stderr } = await rally(['tasks', '--store', file, '--limit', '2'])
    expect(stdout.trim().split('\n')).toHaveLength(3)
    // A pipe gets whole ids.
    expect(stdout).toContain('c3'.padEnd(64, '0'))
    const [, next = ''] = /For more: --before (\S+)/.exec(stderr) ?? []
    const { tasks } = await listed(file, '--limit', '2', '--before', next)
    expect(tasks.map(({ id }) => id.slice(0, 2))).toEqual(['a1'])
    const { stdout: json } = await rally(['tasks', '--store', file, '--json'])
    expect(json).not.toContain('\u001B')
    expect((JSON.parse(json) as Listed & { tasks: { tool: string }[] }).tasks[0]?.tool).toBe(OWNED)
  })

  test('may be filtered', async () => {
    const file = await stored(storedTask('a1', 'deploy'), storedTask('b2', 'build'))
    expect((await listed(file, '--tool', 'build')).tasks).toHaveLength(1)
    expect((await listed(file, '--status', 'failed')).tasks).toHaveLength(0)
    expect((await listed(file, '--before', '2020-01-01')).tasks).toHaveLength(0)
    expect((await listed(file, '--principal', 'ada')).tasks).toHaveLength(0)
    const { stderr } = await rally(['tasks', '--store', file, '--outcome', 'error'])
    expect(stderr).toBe('There are none.\n')
  })
})

test('a task is cancelled, once', async () => {
  const file = await stored(storedTask('a1', 'deploy'))
  expect(await rally(['tasks', 'cancel', 'a100', '--store', file])).toMatchObject({ code: 0 })
  expect((await listed(file)).tasks).toMatchObject([{ status: 'cancelled' }])
  expect(await rally(['tasks', 'cancel', 'a100', '--store', file])).toMatchObject({
    code: 2,
    stderr: 'rally: The task has ended already: cancelled.\n',
  })
})

test.each([
  { args: ['tasks'], says: /Which store\? Pass --store/ },
  {
    args: ['tasks', 'delete', '--store', 'FILE'],
    says: /"delete" is not an action\. Use list, show, cancel or retry\./,
  },
  { args: ['tasks', 'show', '--store', 'FILE'], says: /Which task\?/ },
  { args: ['tasks', 'show', 'abcdef', '--store', 'FILE'], says: /No task has the id "abcdef"/ },
  { args: ['tasks', 'show', 'same', '--store', 'FILE'], says: /2 tasks begin with "same"\. Type more of the id\./ },
  { args: ['tasks', 'retry', 'a100', '--store', 'FILE'], says: /cannot be retried: it has not ended/ },
  {
    args: ['tasks', '--before', 'nonsense', '--store', 'FILE'],
    says: /`before` must be a Date, or `next` of an earlier page/,
  },
  ...['12:30', '0:12'].map((before) => ({
    args: ['tasks', '--before', before, '--store', 'FILE'],
    says: /`before` must be a Date, or `next` of an earlier page/,
  })),
  { args: ['tasks', '--limit', '0', '--store', 'FILE'], says: /whole number from 1 to 1000/ },
  {
    args: ['tasks', '--store', '/nowhere/tasks.db'],
    says: /Cannot open the file \/nowhere\/tasks\.db\. Check that it exists, and that you may write to it/,
  },
  { args: ['tasks', '--store', THIS_FILE], says: /is not a SQLite file/ },
  { args: ['tasks', '--store', 'mysql://root:secret@localhost/db'], says: /--store must be a SQLite file, or a URL/ },
  { args: ['tasks', '--store', 'FILE', '--schema', 'x'], says: /--schema is only for a PostgreSQL store/ },
])('$args is an error that says what is wrong', async ({ args, says }) => {
  const file = await stored(storedTask('a1', 'deploy'), storedTask('same1', 'x'), storedTask('same2', 'x'))
  const silent = { ...openConsole(process), print: unexpected, tell: unexpected }
  const context = { console: silent, env: {}, signal: new AbortController().signal, version: '1.0.0' }
  const argv = args.map((arg) => (arg === 'FILE' ? file : arg))
  const error: unknown = await runProgram(argv, context).catch((thrown: unknown) => thrown)
  expect(error instanceof CommanderError || exitCodeOf(error) === 2).toBe(true)
  expect(whyOf(error)).toMatch(says)
  expect(whyOf(error)).not.toContain('secret')
})

function unexpected(said: unknown): never {
  throw new Error(`This was not to be said: ${String(said)}`)
}

test('a file that is no store is left as it is, and a store that cannot be reached does not tell its password', async () => {
  const missing = join(await folder(), 'none.db')
  await rally(['tasks', '--store', missing])
  expect(existsSync(missing)).toBe(false)
  const { code, stderr } = await rally(['tasks', '--store', 'postgres://rally:secret@127.0.0.1:1/rally'])
  expect(code).toBe(3)
  expect(stderr).toMatch(/^rally: The store failed: .*ECONNREFUSED/)
  expect(stderr).not.toContain('secret')
})
