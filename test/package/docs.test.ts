// Every TypeScript block of the README and the docs is compiled and run as its reader would, against the packed package.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { rally, send } from 'mcp-rally'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { call } from '../wire/messages.ts'
import { Consumer, ROOT } from './consumer.ts'
import type { Page } from './snippets/page.ts'
import type { Outcome } from './snippets/run.ts'
import { blocksOf, runPages } from './snippets/run.ts'
import { loginPage } from './snippets/login.ts'
import { readmePage } from './snippets/readme.ts'
import { runningPages } from './snippets/running.ts'
import { serverPages } from './snippets/server.ts'

const pages: readonly Page[] = [readmePage, ...serverPages, ...runningPages, loginPage]

describe('the TypeScript of the README and the docs', () => {
  let consumer: Consumer
  let outcomes: readonly Outcome[]

  beforeAll(async () => {
    consumer = await Consumer.install([
      'libsql',
      'zod',
      '@types/node',
      'rate-limiter-flexible',
      '@opentelemetry/api',
      'pino',
    ])
    outcomes = await runPages(consumer, pages)
  }, 60_000)
  afterAll(() => consumer.remove())

  test('is all known here', () => {
    const files = readdirSync(join(ROOT, 'docs')).filter((name) => name.endsWith('.md'))
    const withCode = ['README.md', ...files.map((name) => `docs/${name}`)].filter((file) => blocksOf(file).length > 0)
    expect(pages.map(({ file }) => file).toSorted()).toEqual(withCode.toSorted())
  })

  test.each(pages)('has in $file the blocks that are run', ({ file, snippets }) => {
    const blocks = blocksOf(file)
    expect(blocks).toHaveLength(snippets.length)
    for (const [index, { has }] of snippets.entries()) expect(blocks[index]).toContain(has)
  })

  test('compiles, strictly, and logs what it says when it runs', () => {
    const printed = Object.fromEntries(outcomes.map((outcome) => [outcome.name, outcome.printed]))
    const expected = Object.fromEntries(outcomes.map((outcome) => [outcome.name, outcome.expected]))
    expect(printed).toEqual(expected)
  })
})

/** The log without what differs each time. */
const always = (text: string): string => text.replaceAll(/^\d\d(:\d\d){2}|(?<=(flow|reference)=')[\w-]{11}/gm, '…')

test('docs/errors.md has what the default log prints in development', async () => {
  const printed = vi.spyOn(console, 'error').mockImplementation(() => {})
  onTestFinished(() => printed.mockRestore())
  const app = rally({ name: 'shop', version: '1' })
  const stack = 'CardRefused: The bank said no\n    at charge (file:///shop/server.js:7:9)'
  const refused = Object.assign(new Error('The bank said no'), { name: 'CardRefused', stack })
  app.tool('pay', {}, (_args, io) => io.step('charge', () => Promise.reject(refused)))
  await send(app, call('pay'), { principal: 'ada' })
  const page = readFileSync(join(ROOT, 'docs/errors.md'), 'utf8')
  expect(always(page)).toContain(always(`\n${String(printed.mock.calls[0]?.[0])}\n`))
})

test('the client passes the conformance suite with its own code, and what is left out is what the page names', () => {
  const folder = join(ROOT, 'test/conformance')
  for (const file of ['client.mjs', 'client-oauth.mjs']) {
    expect(readFileSync(join(folder, file), 'utf8')).not.toContain('@modelcontextprotocol')
  }
  const left = readFileSync(join(folder, 'report.mjs'), 'utf8').match(/(?<=\^)auth[^$]*/g)
  expect(left).toEqual([String.raw`auth\/dpop(-nonce)?`, String.raw`auth\/wif-jwt-bearer`])
  const page = readFileSync(join(ROOT, 'docs/conformance.md'), 'utf8').replaceAll(/\s+/g, ' ')
  expect(page).toContain('Left out are two proposals, DPoP and workload identity')
})

test.each([
  { file: 'README.md', has: ['test', 'bench', 'conformance', 'matrix'] },
  { file: 'examples/README.md', has: ['start'] },
  { file: 'CONTRIBUTING.md', has: ['start', 'test', 'check', 'runtimes'] },
])('the npm commands of $file are scripts of the package', ({ file, has }) => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: object }
  const page = readFileSync(join(ROOT, file), 'utf8')
  const commands = [...page.matchAll(/\bnpm (?!install|init|pkg)(?:run )?([a-z:]+)/g)].map(([, name]) => name)
  expect(commands).toEqual(expect.arrayContaining(has))
  expect(commands.filter((name = '') => !(name in scripts))).toEqual([])
})

test('files that the README tells its reader to test are there', () => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  const named = [...readme.matchAll(/`npm test -- (\S+)`/g)].map(([, path = '']) => path)
  expect(named.length).toBeGreaterThan(0)
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
})

test('the README counts the calls and effects of the fleet drill as the drill does', () => {
  const drill = readFileSync(join(ROOT, 'test/fleet/drill.test.ts'), 'utf8')
  const constant = (name: string): number => Number(new RegExp(`^const ${name} = (\\d+)$`, 'm').exec(drill)?.[1])
  const [flows, effects] = [constant('FLOWS'), constant('FLOWS') * 2 * constant('STEPS_EACH_SIDE')]
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8').replaceAll(/\s+/g, ' ')
  expect(readme).toContain(`while ${flows} calls with a question run`)
  expect(readme).toContain(`none of ${effects.toLocaleString('en')} effects is repeated`)
})
