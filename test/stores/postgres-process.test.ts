// The store in a process of its own, from the built package.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { ROOT } from '../package/consumer.ts'
import { useDatabase } from './database.ts'
import { WITHOUT_PG } from './without-pg.ts'

const execute = promisify(execFile)

const database = useDatabase()

/** Runs a program to its end; one that does not end by itself fails. */
async function run(program: string, ...nodeOptions: readonly string[]): Promise<string> {
  const args = [...nodeOptions, '--input-type=module', '--eval', program]
  const { stdout } = await execute(process.execPath, args, { cwd: ROOT, timeout: 20_000 })
  return stdout
}

/** Listens, and has used a connection. */
const opened = (schema: string): string => `
  import { postgres } from 'mcp-rally/postgres'
  const store = postgres(${JSON.stringify(database.url)}, { schema: '${schema}' })
  store.mailbox.watch('box', () => {})
  // Waiting for news alone does not keep the process alive.
  const alive = setInterval(() => {}, 1000)
  await new Promise((resolve) => store.tasks.watch(resolve))
  clearInterval(alive)
  await store.once.claim('key', 'note', 1000)
`

test('keeps no process alive that has nothing left to do', async () => {
  expect(await run(`${opened(database.nextSchema())}\nconsole.log('through')`)).toBe('through\n')
})

test('lets a process come to the end of closing it', async () => {
  expect(await run(`${opened(database.nextSchema())}\nawait store.close()\nconsole.log('closed')`)).toBe('closed\n')
})

test('says what to install where pg is missing, and does without it where a pool is given', async () => {
  const program = `
    import { postgres } from 'mcp-rally/postgres'
    const failed = await postgres('postgres://127.0.0.1/none').tasks.read('t').catch((error) => error)
    console.log(failed.code, failed.message)
    const pool = { query: async () => ({ rows: [] }), connect: async () => { throw new Error('asked') }, on() {}, removeListener() {} }
    console.log((await postgres(pool).tasks.read('t').catch((error) => error)).message)
  `
  expect(await run(program, '--import', WITHOUT_PG)).toBe(
    'STORE_DRIVER_MISSING postgres(): the package pg is missing. Run `npm install pg`.\nasked\n',
  )
})
