// The watchdog ends a process whose event loop is blocked while it runs tasks, and is no burden to any other. Uses the built package.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { MemoryStore, rally } from 'mcp-rally'
import { connect } from 'mcp-rally/client'
import { expect, onTestFinished, test } from 'vitest'

interface Ended {
  readonly signal: string | null
  readonly stdout: string
  readonly stderr: string
}

function run(options: object, ...flags: readonly string[]): Promise<Ended> {
  const file = fileURLToPath(new URL('watchdog.mjs', import.meta.url))
  const env = { ...process.env, OPTIONS: JSON.stringify(options) }
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [...flags, file],
      { env, timeout: 25_000, killSignal: 'SIGABRT' },
      (error, stdout, stderr) => {
        resolve({ signal: error?.signal ?? null, stdout, stderr })
      },
    )
  })
}

test.concurrent.each([
  { what: 'has no store', options: { hasStore: false, call: true }, stdout: 'Done.\n0 threads\n' },
  { what: 'has run no task', options: { hasStore: true, call: false }, stdout: '0 threads\n' },
  { what: 'has run a task', options: { hasStore: true, call: true }, stdout: 'Done.\n1 threads\n' },
])('a process that $what starts a thread only for tasks, and ends by itself', async ({ options, stdout }) => {
  expect(await run(options)).toEqual({ signal: null, stdout, stderr: '' })
})

test.concurrent('a process that is blocked for longer than watchdogMs ends, and says why', async () => {
  const { signal, stderr } = await run({ hasStore: true, call: true, blockMs: 20_000, tasks: { watchdogMs: 400 } })
  expect({ signal, stderr }).toEqual({
    signal: 'SIGKILL',
    stderr:
      'mcp-rally: the event loop was blocked for 400 ms while tasks ran. The process ends, so that other instances continue its ' +
      'tasks. See the option `tasks.watchdogMs`.\n',
  })
})

test.concurrent.each([false, 0])('watchdogMs: %s starts no thread, and the process survives', async (watchdogMs) => {
  const options = { hasStore: true, call: true, blockMs: 1_200, tasks: { watchdogMs, leaseMs: 300 } }
  expect(await run(options)).toEqual({ signal: null, stdout: 'Done.\n0 threads\n', stderr: '' })
})

test.concurrent('a process that may start no threads runs its tasks, and says once that nothing watches them', async () => {
  const permission = process.allowedNodeEnvironmentFlags.has('--permission')
    ? '--permission'
    : '--experimental-permission'
  const { signal, stdout, stderr } = await run(
    { hasStore: true, call: 2 },
    permission,
    '--allow-fs-read=*',
    '--no-warnings',
  )
  expect({ signal, stdout }).toEqual({ signal: null, stdout: 'Done.\nDone.\n0 threads\n' })
  expect(stderr.match(/The watchdog of tasks is off: its thread cannot run/g)).toHaveLength(1)
})

test('a task that never settles fails after tasks.timeoutMs, and its place is free for another', async () => {
  const store = new MemoryStore()
  const logger = { warn: () => {}, error: () => {} }
  const app = rally({ name: 'limits', version: '1', store, logger, tasks: { timeoutMs: 300, concurrency: 1 } })
  app.tool('never', { task: 'always' }, (_args, io) => io.step('never', () => new Promise<never>(() => {})))
  app.tool('own', { task: 'always', timeoutMs: 60 }, (_args, io) => io.step('own', () => new Promise<never>(() => {})))
  app.tool('quick', { task: 'always' }, () => 'Done.')
  app.work()
  onTestFinished(async () => {
    app.drain()
    app.interrupt()
    await app.idle()
  })
  const client = await connect(app)
  const ends = ['never', 'own', 'quick'].map((name) => client.callTool(name).catch((error: unknown) => error))
  const [never, own, quick] = await Promise.all(ends)
  expect(never).toMatchObject({ rpcCode: -32603, data: { code: 'TIME_LIMIT' } })
  expect(String(never)).toContain('300 ms')
  // The tool's own limit takes precedence.
  expect(String(own)).toContain('60 ms')
  expect(quick).toMatchObject({ content: [{ text: 'Done.' }] })
  await client.close()
})
