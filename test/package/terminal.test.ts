// The commands of docs/terminal.md, typed as they are there, one after the other.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { MemoryStore, rally } from 'mcp-rally'
import type { Serving } from 'mcp-rally/node'
import { serve } from 'mcp-rally/node'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { ROOT } from './consumer.ts'

const ADDRESS = 'http://127.0.0.1:3000/mcp'

let serving: Serving
let folder: string
let page: string

beforeAll(async () => {
  serving = await serve(app(), { port: 0, handleSignals: false })
  folder = await mkdtemp(join(tmpdir(), 'rally-terminal-'))
  page = await readFile(join(ROOT, 'docs/terminal.md'), 'utf8')
  await writeFile(join(folder, 'answers.json'), blocksOf('json')[0] ?? '')
  await writeFile(join(folder, 'server.mjs'), SERVER)
})
afterAll(async () => {
  await serving.close()
  await rm(folder, { recursive: true })
})

test('every command of the page does what it says', { timeout: 60_000 }, async () => {
  const ran: [command: string, code: number, said: string][] = []
  let id = ''
  for (const command of blocksOf('sh').flatMap((block) => block.trim().split('\n'))) {
    const { code, stdout } = await run(command.replace(ADDRESS, serving.url).replace('<id>', id))
    if (command.includes('--detach')) id = stdout.trim()
    ran.push([command.replace(/^npx mcp-rally (\w+).*$/, '$1'), code, stdout.trim()])
  }
  expect(ran).toEqual([
    ['tools', 0, expect.stringContaining('deploy')],
    ['call', 0, 'Deployed to prod.'],
    ['call', 4, ''],
    ['resume', 0, expect.stringContaining('"text":"Deployed to prod."')],
    ['call', 0, expect.stringMatching(/^[0-9a-f]{64}$/)],
    ['task', 0, '3 pages on May.'],
    ['prompt', 0, expect.stringContaining('Review a.ts for speed.')],
    ['read', 0, '{"debug":false}'],
    ['skills', 0, expect.stringContaining('skill://refunds/SKILL.md')],
    ['skill', 0, 'At most 100 EUR.'],
    ['request', 0, '{"currency":"EUR","rate":1.25}'],
    ['call', 0, 'Deployed to prod.'],
    ['call', 4, ''],
    ['resume', 0, 'Deployed to prod.'],
  ])
})

test('every option of the page is one of the program', async () => {
  const { stdout } = await run('npx mcp-rally task --help')
  const { stdout: call } = await run('npx mcp-rally call --help')
  const { stdout: resume } = await run('npx mcp-rally resume --help')
  const { stdout: login } = await run('npx mcp-rally login --help')
  const { stdout: tasks } = await run('npx mcp-rally tasks --help')
  const options = [...page.matchAll(/^\| `(?:-\w, )?(--[a-z-]+)`/gm)].map(([, option = '']) => option)
  expect(options.length).toBeGreaterThan(8)
  expect(options.filter((option) => !`${stdout}${call}${resume}${login}${tasks}`.includes(option))).toEqual([])
})

function app(): ReturnType<typeof rally> {
  const made = rally({
    name: 'terminal',
    version: '1.0.0',
    store: new MemoryStore(),
    keys: ['a secret of the terminal tests, long enough'],
  })
  made.tool('deploy', { input: z.object({ env: z.string() }) }, async ({ env }, io) =>
    (await io.confirm('sure', `Deploy to ${env}?`)) ? `Deployed to ${env}.` : 'Not deployed.',
  )
  made.tool('report', { input: z.object({ month: z.string() }), task: 'always' }, async ({ month }, io) => {
    const { count } = await io.ask('pages', 'How many pages?', z.object({ count: z.number() }))
    return `${count} pages on ${month}.`
  })
  made.prompt('review', { arguments: z.object({ file: z.string() }) }, async ({ file }, io) => {
    const focus = await io.choose('focus', 'What to look at?', ['safety', 'speed'])
    return `Review ${file} for ${focus}.`
  })
  made.resource('config://app', { name: 'config' }, () => '{"debug":false}')
  const files = { 'references/limits.md': 'At most 100 EUR.\n' }
  made.skill('refunds', { description: 'How to refund', files }, 'Read the limits.')
  made.method('com.example/rate', { params: z.object({ currency: z.string() }) }, ({ currency }) => ({
    currency,
    rate: 1.25,
  }))
  return made
}

/** A server of its own, for the command that starts one. */
const SERVER = `
  import { rally } from ${JSON.stringify(join(ROOT, 'dist/index.js'))}
  import { stdio } from ${JSON.stringify(join(ROOT, 'dist/node.js'))}
  const app = rally({ name: 'terminal', version: '1.0.0', keys: ['a key of the tests, which is long enough'] })
  const input = { type: 'object', properties: { env: { type: 'string' } }, required: ['env'] }
  app.tool('deploy', { input }, async ({ env }, io) =>
    (await io.confirm('sure', 'Deploy?')) ? 'Deployed to ' + env + '.' : 'Not deployed.')
  await stdio(app)
`

function blocksOf(language: string): string[] {
  return [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(([, code = '']) => code)
}

async function run(command: string): Promise<{ code: number; stdout: string }> {
  const [npx, program, ...args] = command.split(' ')
  expect([npx, program]).toEqual(['npx', 'mcp-rally'])
  const env = { PATH: process.env['PATH'], HOME: folder }
  try {
    const { stdout } = await execute(process.execPath, [join(ROOT, 'dist/cli.js'), ...args], { cwd: folder, env })
    return { code: 0, stdout }
  } catch (error) {
    const { code, stdout } = error as { code: number; stdout: string }
    return { code, stdout }
  }
}

const execute = promisify(execFile)
