// Node 22 and 24, Bun and Deno, each from its npm package: see package.json beside this file.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { connect } from 'mcp-rally/client'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { Consumer, ROOT } from '../package/consumer.ts'
import { headersOf, request } from '../wire/messages.ts'
import { APP, CLIENT, clientContract, hostContract, type Started } from './contract.ts'
import { killed } from './processes.ts'
import { runtimes as listed } from './table.ts'

const execute = promisify(execFile)

const NODE_HOST = `
  import { serve } from 'mcp-rally/node'
  import { app } from './app.mjs'
  const { url } = await serve(app, { port: 0, allowedHosts: '*' })
  console.log(url)
`
const BUN_HOST = `
  import { app } from './app.mjs'
  const { port } = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: app.fetch })
  console.log('http://127.0.0.1:' + port + '/mcp')
`
const DENO_HOST = `
  import { app } from './app.mjs'
  const onListen = ({ port }) => console.log('http://127.0.0.1:' + port + '/mcp')
  Deno.serve({ port: 0, hostname: '127.0.0.1', onListen }, app.fetch)
`

const installed = join(import.meta.dirname, 'node_modules')
const BUN = join(installed, '@oven/bun-linux-x64/bin/bun')
const runtimes = [
  { runtime: 'Node 22', command: [join(installed, 'node22/bin/node')], host: NODE_HOST },
  { runtime: 'Node 24', command: [join(installed, 'node24/bin/node')], host: NODE_HOST },
  { runtime: 'Bun', command: [BUN], host: BUN_HOST },
  {
    runtime: 'Deno',
    command: [
      join(installed, '@deno/linux-x64-glibc/deno'),
      'run',
      '--allow-all',
      '--no-lock',
      '--node-modules-dir=manual',
    ],
    host: DENO_HOST,
  },
]

test('every runtime that the docs list is tried', () => {
  expect(runtimes.map(({ runtime }) => runtime)).toEqual(listed.map(({ name }) => name))
})

describe.each(runtimes)('$runtime', ({ runtime, command: [program = '', ...args], host }) => {
  let consumer: Consumer
  let started: Started

  const run = async (file: string, ...values: string[]): Promise<unknown> => {
    const { stdout } = await execute(program, [...args, file, ...values], { cwd: consumer.folder, timeout: 20_000 })
    return JSON.parse(stdout)
  }

  beforeAll(async () => {
    consumer = await Consumer.install(['zod'])
    await consumer.write({ 'app.mjs': APP, 'client.mjs': CLIENT, 'host.mjs': host, 'run.mjs': RUN, 'store.mjs': STORE })
    started = await start(spawn(program, [...args, 'host.mjs'], { cwd: consumer.folder }))
  }, 60_000)
  afterAll(async () => {
    await started.stop()
    await consumer.remove()
  })

  hostContract(runtime, async () => ({ url: started.url, stop: async () => {} }))

  clientContract(
    runtime,
    (url) => run('run.mjs', url),
    () => started.url,
  )

  test('has a SQLite of its own, which a store uses', async () => {
    expect(await run('store.mjs')).toEqual(['yours', 'held'])
  })
})

describe.each(runtimes.filter(({ runtime }) => runtime.startsWith('Node')))(
  '$runtime',
  ({ command: [program = ''] }) => {
    const vitest = async (...files: string[]): Promise<string> => {
      const path = join(ROOT, 'node_modules/vitest/vitest.mjs')
      const { stdout } = await execute(program, [path, 'run', '--typecheck.enabled=false', ...files], { cwd: ROOT })
      return stdout
    }

    test('passes the contract of a SQLite store with the SQLite of the runtime', async () => {
      const files = [
        'test/stores/sqlite.test.ts',
        'test/stores/sqlite-file.test.ts',
        'test/stores/sqlite-processes.test.ts',
      ]
      expect(await vitest(...files)).toMatch(/Test Files .*3 passed/)
    }, 120_000)

    test('runs TypeScript with `rally dev`, which passes its tests there', async () => {
      const { stdout } = await execute(program, ['-p', 'process.features.typescript'])
      expect(stdout.trim()).toBe('strip')
      expect(await vitest('test/cli/dev.test.ts')).toMatch(/Test Files .*1 passed/)
    }, 120_000)
  },
)

test('a quiet stream outlives the 10 seconds after which Bun closes a connection', async () => {
  const consumer = await Consumer.install(['zod'])
  onTestFinished(() => consumer.remove())
  await consumer.write({ 'app.mjs': APP, 'host.mjs': BUN_HOST })
  const host = await start(spawn(BUN, ['host.mjs'], { cwd: consumer.folder }))
  onTestFinished(() => host.stop())
  const message = request('subscriptions/listen', { notifications: { resourceSubscriptions: ['config://app'] } })
  const { body } = await fetch(host.url, { method: 'POST', headers: headersOf(message), body: JSON.stringify(message) })
  const quiet = new Promise((resolve) => setTimeout(resolve, 12_000))
  const client = await connect(host.url)
  void quiet.then(() => client.callTool('change', {}))
  let received = ''
  for await (const chunk of (body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
    received += chunk
    if (received.includes('notifications/resources/updated')) break
  }
  expect(received).toContain('notifications/resources/updated')
  await client.close()
}, 60_000)

const RUN = `
  import { callAll } from './client.mjs'
  console.log(JSON.stringify(await callAll(process.argv[2])))
`

/** libsql is not installed there. */
const STORE = `
  import { sqlite } from 'mcp-rally/sqlite'
  const store = sqlite(':memory:')
  const said = []
  for (const _ of [1, 2]) said.push((await store.once.claim('key', 'note', 1000)).kind)
  await store.close()
  console.log(JSON.stringify(said))
`

async function start(child: ChildProcess): Promise<Started> {
  child.stderr?.pipe(process.stderr)
  const [url] = (await once(createInterface({ input: child.stdout ?? process.stdin }), 'line')) as [string]
  return {
    url,
    stop: () => killed(child),
  }
}
