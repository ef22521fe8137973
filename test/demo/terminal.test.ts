import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Child } from '../interop/child.ts'
import { specValidator } from '../spec/validate.ts'
import { curl, runDemo, shell, startDemo } from './demo-process.ts'

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
}

test('the two commands it prints ask and answer when pasted into a shell as they are', async () => {
  const { child } = await startDemo()
  const [begin = '', answer = ''] = await printedCommands(child)
  const env = { TMPDIR: await temporaryFolder() }

  const question = await shell(begin, env)
  expect(JSON.parse(question)).toMatchObject({
    id: 1,
    result: {
      resultType: 'input_required',
      inputRequests: { confirm: { params: { message: expect.stringMatching(/^Deploy \w{7} to staging\?$/) } } },
    },
  })
  expect(question.at(-1)).toBe('\n')
  const [, sha] = /Deploy (\w{7}) to staging/.exec(question) ?? []
  expect(JSON.parse(await shell(answer, env))).toMatchObject({
    id: 2,
    result: { resultType: 'complete', content: [{ type: 'text', text: `Deployed ${sha} to staging` }] },
  })
})

test('the second command works on another process with the keys that it suggests, by its port alone', async () => {
  const { child } = await startDemo()
  await child.printed.match(/--port 3002/)
  const suggested = [...child.printed.text.matchAll(/^ {2}RALLY_KEYS=(\S+) npm start -- --port \d+$/gm)]
  expect(suggested).toHaveLength(2)
  const [[, key = ''] = [], [, other] = []] = suggested
  expect(other).toBe(key)

  const [first, second] = await Promise.all([startDemo({ RALLY_KEYS: key }), startDemo({ RALLY_KEYS: key })])
  const [begin = '', answer = ''] = await printedCommands(first.child)
  expect(first.child.printed.text).toContain('Between the two you may kill this process.')
  const env = { TMPDIR: await temporaryFolder() }
  await shell(begin, env)
  await first.child.kill()
  const elsewhere = answer.replace(new URL(first.url).port, new URL(second.url).port)
  expect(await shell(elsewhere, env)).toMatch(/"Deployed \w{7} to staging"/)
})

test('it names the tools that it has', async () => {
  const { child, url } = await startDemo()
  const [, named = ''] = await child.printed.match(/Tools: (.*)\n/)
  const listed = await curl(url, { method: 'tools/list', params: { _meta: meta } })
  const { tools } = (listed as { result: { tools: { name: string }[] } }).result
  expect(named.split(', ')).toEqual(tools.map(({ name }) => name))
})

const USAGE = 'Usage: npm start -- [--port N | --stdio] [--store FILE | --store postgres://... | --store memory]'
const STORES = '--store must be the path of a file, postgres://user:password@host/database, or memory.'
const NOT_A_PORT = 'is not a port. Use a number from 0 to 65535; 0 takes any free port.'

/** How to make a key. */
const HOW = `Create one with \`node -p "crypto.randomBytes(32).toString('base64url')"\`.`

test.each([
  { args: ['--port', 'many'], says: `--port many ${NOT_A_PORT}` },
  { args: ['--port', '65536'], says: `--port 65536 ${NOT_A_PORT}` },
  { args: ['--port=-1'], says: `--port -1 ${NOT_A_PORT}` },
  { args: ['--port', '3e3'], says: `--port 3e3 ${NOT_A_PORT}` },
  { args: ['--port'], says: `Option '--port <value>' argument missing\n${USAGE}` },
  { args: ['--prot', '3001'], says: `Unknown option '--prot'\n${USAGE}` },
  {
    args: ['3001'],
    says: `Unexpected argument '3001'. This command does not take positional arguments\n${USAGE}`,
  },
  { args: ['--store', 'mysql://127.0.0.1/tasks'], says: STORES },
  { args: ['--store='], says: STORES },
  {
    args: ['--store', '/no/such/folder/tasks.db'],
    says:
      '--store /no/such/folder/tasks.db: sqlite(): cannot open /no/such/folder/tasks.db for writing. ' +
      'Check that its folder exists, and that this process may write to both.',
  },
  {
    // Nothing listens on the port that stands for none.
    args: ['--store', 'postgres://ada:a-secret@127.0.0.1:1/tasks'],
    says:
      '--store: the database cannot be used (connect ECONNREFUSED 127.0.0.1:1). ' +
      'Check that PostgreSQL runs there, and that user, password and database are correct.',
  },
  {
    args: ['--port', '0'],
    keys: 'too short',
    says: `RALLY_KEYS: keys[0] must have at least 32 bytes, got 9. ${HOW}`,
  },
  {
    args: ['--stdio'],
    keys: 'this one has thirty-two characters, too short',
    says: `RALLY_KEYS: keys[1] must have at least 32 bytes, got 9. ${HOW}`,
  },
])('started with $args and the keys $keys it ends with one clear message', async ({ args, keys, says }) => {
  const child = runDemo(args, keys === undefined ? {} : { RALLY_KEYS: keys })
  expect(await child.ended).toEqual({ code: 1, signal: null })
  expect(child.complained.text).toBe(`${says}\n`)
  expect(child.printed.text).toBe('')
})

test('without a port it takes 3000, or says that somebody else has it', async () => {
  const { printed, complained } = runDemo([])
  const listening = printed.match(/listening on http:\/\/127\.0\.0\.1:3000\/mcp/)
  const [said] = await Promise.any([listening, complained.match(/Port 3000 is in use/)])
  expect(said).toContain('3000')
})

test('a port that is taken is named, and another one suggested', async () => {
  const taken = createServer()
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void taken.close())
  const { port } = taken.address() as AddressInfo
  const child = runDemo(['--port', String(port)])
  expect(await child.ended).toEqual({ code: 1, signal: null })
  expect(child.complained.text).toBe(
    `Port ${port} is in use. Use another one: --port 3001, or --port 0 for any free port.\n`,
  )
})

test('over the standard streams it prints nothing but messages, and ends when its input does', async () => {
  const child = runDemo(['--stdio'])
  const call = (id: number, params: object) =>
    child.say(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { ...params, _meta: meta } })}\n`)
  call(1, { name: 'deploy', arguments: { env: 'staging' } })
  await child.printed.match(/"id":1,.*\n/)
  call(2, { name: 'long_sum', arguments: { n: 'many' } })
  await child.printed.match(/"id":2,.*\n/)
  child.say('this is no message\n')
  await child.printed.match(/Parse error.*\n/)
  child.hangUp()

  expect(await child.ended).toEqual({ code: 0, signal: null })
  const lines = child.printed.text.trimEnd().split('\n')
  expect(lines).toHaveLength(3)
  expect(lines.map((line) => JSON.parse(line) as unknown).flatMap(specValidator('JSONRPCMessage'))).toEqual([])
  expect(child.complained.text).toBe('')
})

/** The curl commands in what it printed: each from its name to the next empty line. */
async function printedCommands({ printed }: Child): Promise<string[]> {
  await printed.match(/the second command|npm start -- --port 3002/)
  const commands = [...printed.text.matchAll(/^ {2}(curl [\s\S]*?)\n\n/gm)].map(([, command = '']) => command)
  expect(commands).toHaveLength(2)
  return commands
}

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'rally-demo-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}
