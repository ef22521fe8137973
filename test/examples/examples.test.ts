// Every numbered example runs: its tools under `harsh` and with a client, its hosts as processes. The fleet is a drill, because it needs HAProxy.
import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as esbuild from 'esbuild'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import type { Rally } from 'mcp-rally'
import { connect } from 'mcp-rally/client'
import { serve } from 'mcp-rally/node'
import { accept, harsh, madeUp } from 'mcp-rally/testing'
import { expect, onTestFinished, test } from 'vitest'
import { app as firstTool } from '../../examples/01-first-tool.ts'
import { app as forms } from '../../examples/02-forms.ts'
import { app as steps, cloud } from '../../examples/03-steps.ts'
import { app as needs } from '../../examples/04-needs.ts'
import { app as byHand } from '../../examples/05-by-hand.ts'
import { app as tasks } from '../../examples/06-task.ts'
import { app as payroll, authenticate } from '../../examples/08-oauth.ts'
import { app as telemetry, exporter } from '../../examples/12-telemetry.ts'
import { answering, ended, freePort, killed } from '../runtimes/processes.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const EXAMPLES = join(ROOT, 'examples')

type Content = Readonly<Record<string, string | number | boolean | string[]>>

const ADA: Content = {
  name: 'Ada',
  email: 'ada@example.com',
  birthday: '1815-12-10',
  bags: 2,
  seat: 'aisle',
  extras: [],
}

interface Case {
  readonly file: string
  readonly app: Rally
  readonly tool: string
  readonly args?: Record<string, string>
  /** By the keys of the questions. What is missing is made up. */
  readonly answers?: Readonly<Record<string, Content>>
  readonly says: RegExp
}

const cases: readonly Case[] = [
  { file: '01-first-tool.ts', app: firstTool, tool: 'greet', answers: { who: { name: 'Ada' } }, says: /^Hello, Ada!$/ },
  {
    file: '02-forms.ts',
    app: forms,
    tool: 'book',
    answers: { traveller: ADA },
    says: /^Booked for Ada, aisle seat, 79 EUR$/,
  },
  { file: '03-steps.ts', app: steps, tool: 'deploy', args: { service: 'web' }, says: /^Deployed web@3\.0$/ },
  {
    file: '04-needs.ts',
    app: needs,
    tool: 'order',
    args: { title: 'Persuasion' },
    says: /^Ordered Persuasion, 0 in stock$/,
  },
  { file: '06-task.ts', app: tasks, tool: 'provision', args: { name: 'web' }, says: /^web runs in eu-north$/ },
  { file: '12-telemetry.ts', app: telemetry, tool: 'order', says: /^Ordered\.$/ },
]

test.each(cases)(
  '$file does what it says, in the worst order too',
  async ({ app, tool, args = {}, answers = {}, says }) => {
    const answer = (question: Parameters<typeof madeUp>[0]) => {
      const content = answers[question.key]
      return content === undefined ? madeUp(question) : accept(content)
    }
    const { result } = await harsh(app, tool, { args, answer, runs: 4 })
    expect(result?.content).toEqual([{ type: 'text', text: expect.stringMatching(says) }])
  },
)

test('03-steps.ts has one effect for a call of two rounds', async () => {
  cloud.clear()
  const client = await connect(steps, { onElicit: () => ({ action: 'accept', content: { confirm: true } }) })
  await client.callTool('deploy', { service: 'web' })
  await client.close()
  expect([...cloud.values()]).toEqual(['web@3.0'])
})

test('05-by-hand.ts takes as many rounds as the user has items', async () => {
  const items = ['milk', 'bread', '']
  const client = await connect(byHand, {
    onElicit: () => ({ action: 'accept', content: { item: items.shift() ?? '' } }),
  })
  expect(await client.callTool('list')).toMatchObject({ content: [{ text: 'To buy: milk, bread' }] })
  await client.close()
})

test('08-oauth.ts serves who has a token, shows a manager more, and refuses a stranger', async () => {
  const { privateKey, publicKey } = await generateKeyPair('EdDSA')
  const issuing = createServer((_request, response) => {
    void exportJWK(publicKey).then((key) =>
      response.end(JSON.stringify({ keys: [{ ...key, alg: 'EdDSA', kid: 'k' }] })),
    )
  }).listen(0, '127.0.0.1')
  await once(issuing, 'listening')
  onTestFinished(() => void issuing.close())
  const issuer = `http://127.0.0.1:${(issuing.address() as AddressInfo).port}`
  const server = 'https://payroll.example.com/mcp'
  const { url, close } = await serve(payroll, {
    port: 0,
    authenticate: authenticate(issuer, server),
    handleSignals: false,
  })
  onTestFinished(close)
  const toolsOf = async (claims: object): Promise<string[]> => {
    const token = await new SignJWT({ ...claims, client_id: 'test' })
      .setProtectedHeader({ alg: 'EdDSA', kid: 'k', typ: 'at+jwt' })
      .setIssuer(issuer)
      .setAudience(server)
      .setSubject('ada')
      .setExpirationTime('1h')
      .sign(privateKey)
    const client = await connect(url, { headers: { Authorization: `Bearer ${token}` } })
    const tools = await client.listTools()
    await client.close()
    return tools.map(({ name }) => name)
  }
  expect(await toolsOf({ scope: 'salary:read salary:write' })).toEqual(['my_salary'])
  expect(await toolsOf({ scope: 'salary:read salary:write', role: 'manager' })).toEqual(['my_salary', 'raise'])
  await expect(connect(url)).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
})

test('09-express.mjs serves beside other routes', async () => {
  const port = await freePort()
  await running(
    spawn(process.execPath, [join(EXAMPLES, '09-express.mjs')], { env: { ...process.env, PORT: String(port) } }),
  )
  await answering(`http://127.0.0.1:${port}/`)
  expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('The shop')
  expect(await call(`http://127.0.0.1:${port}/mcp`, 'checkout')).toBe('Paid.')
})

test('10-workers.ts runs in workerd', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rally-worker-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const port = await freePort()
  const entryPoints = [join(EXAMPLES, '10-workers.ts')]
  const conditions = ['workerd', 'worker', 'browser']
  const outfile = join(folder, 'bundle.js')
  const options = { bundle: true, format: 'esm', tsconfigRaw: '{}', logLevel: 'error' } as const
  await esbuild.build({ entryPoints, outfile, conditions, external: ['node:*'], ...options })
  writeFileSync(join(folder, 'worker.capnp'), workerd(port))
  // The package has no types.
  const { default: program } = createRequire(import.meta.url)('workerd') as { default: string }
  await running(spawn(program, ['serve', 'worker.capnp'], { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] }))
  await answering(`http://127.0.0.1:${port}/`)
  expect(await call(`http://127.0.0.1:${port}/mcp`, 'purge')).toBe('Purged.')
})

test('12-telemetry.ts links the rounds of a call', async () => {
  exporter.reset()
  const client = await connect(telemetry, { onElicit: () => ({ action: 'accept', content: { confirm: true } }) })
  await client.callTool('order')
  await client.close()
  const rounds = exporter.getFinishedSpans().filter(({ name }) => name === 'tools/call order')
  expect(rounds).toHaveLength(2)
  expect(rounds[1]?.links[0]?.context.spanId).toBe(rounds[0]?.spanContext().spanId)
})

test('the list names every numbered example, and the tests run each', () => {
  const numbered = readdirSync(EXAMPLES).filter((name) => /^\d\d-.*\.(ts|mjs)$/.test(name))
  const list = readFileSync(join(EXAMPLES, 'README.md'), 'utf8')
  const tested = ['examples.test.ts', '../demo/ask-anywhere.test.ts', '../drill/fleet-example.drill.ts']
    .map((file) => readFileSync(join(import.meta.dirname, file), 'utf8'))
    .join('\n')
  expect(numbered.length).toBeGreaterThanOrEqual(11)
  expect(numbered.filter((name) => !list.includes(`[${name}](${name})`))).toEqual([])
  expect(numbered.filter((name) => !tested.includes(name.replace(/\.(ts|mjs)$/, '')))).toEqual([])
  for (const name of numbered)
    expect([name, readFileSync(join(EXAMPLES, name), 'utf8').split('\n').length < 60]).toEqual([name, true])
})

test('the list marks every file that rally dev does not serve alone', () => {
  const rows = readFileSync(join(EXAMPLES, 'README.md'), 'utf8').matchAll(/^\| \[(.+?)\]\(.+?\)( \\\*)? /gm)
  const unmarked = [...rows].flatMap(([, name = '', mark]) => (mark === undefined ? [name] : []))
  expect(unmarked.length).toBeGreaterThanOrEqual(11)
  const isServed = (name: string): boolean =>
    /^export const app\b|\b(serve|listen)\(/m.test(readFileSync(join(EXAMPLES, name), 'utf8'))
  expect(unmarked.filter((name) => !isServed(name))).toEqual([])
})

test.each([
  { file: 'refunds.ts', tools: ['refund'] },
  { file: 'payroll.ts', tools: ['my_salary', 'raise'] },
  { file: 'limited.ts', tools: ['greet'] },
])('$file of the list is served by rally dev', async ({ file, tools }) => {
  const folder = mkdtempSync(join(tmpdir(), 'rally-examples-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(ROOT, join(folder, 'node_modules/mcp-rally'))
  for (const name of ['zod', 'rate-limiter-flexible'])
    symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name))
  const port = await freePort()
  const [, block = ''] = readFileSync(join(EXAMPLES, 'README.md'), 'utf8').split(new RegExp(`Write\\s\`${file}\``))
  const contents = (/```ts\n([^]*?)```/.exec(block)?.[1] ?? '').replaceAll('3000', String(port))
  // Node 20 does not run TypeScript.
  await esbuild.build({
    stdin: { contents, resolveDir: EXAMPLES, loader: 'ts' },
    outfile: join(folder, 'server.mjs'),
    bundle: true,
    format: 'esm',
    packages: 'external',
    tsconfigRaw: '{}',
  })
  const args = [join(ROOT, 'dist/cli.js'), 'dev', 'server.mjs', '--port', String(port)]
  const dev = spawn(process.execPath, args, { cwd: folder, stdio: ['pipe', 'ignore', 'ignore'] })
  onTestFinished(() => ended(dev))
  await answering(`http://127.0.0.1:${port}/`)
  const client = await connect(`http://127.0.0.1:${port}/mcp`)
  expect((await client.listTools()).map(({ name }) => name)).toEqual(expect.arrayContaining(tools))
  await client.close()
})

/** Calls a tool that asks for a confirmation. */
async function call(url: string, tool: string): Promise<unknown> {
  const client = await connect(url, { onElicit: () => ({ action: 'accept', content: { confirm: true } }) })
  const { content } = await client.callTool(tool)
  await client.close()
  return content[0]?.type === 'text' ? content[0].text : content
}

async function running(child: ChildProcess): Promise<void> {
  onTestFinished(() => killed(child))
  await once(child, 'spawn')
}

function workerd(port: number): string {
  return `
    using Workerd = import "/workerd/workerd.capnp";
    const config :Workerd.Config = (
      services = [(name = "main", worker = .main)],
      sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
    );
    const main :Workerd.Worker = (
      modules = [(name = "worker", esModule = embed "bundle.js")],
      compatibilityDate = "2026-04-01",
      compatibilityFlags = ["nodejs_compat"],
    );
  `
}
