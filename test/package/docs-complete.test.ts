// What the docs must name: every error code, every method of `io`, every option. And every link must lead somewhere.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ROOT } from './consumer.ts'
import { blocksOf } from './snippets/run.ts'

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')

const docs = readdirSync(join(ROOT, 'docs'))
  .filter((name) => name.endsWith('.md'))
  .map((name) => `docs/${name}`)
const pages = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'bench/README.md', ...docs]

const source = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((file) => /(?<!\.test)\.ts$/.test(file))
  .map((file) => read(join('src', file)))
  .join('\n')

test('docs/errors.md explains every error code', () => {
  const codes = [...read('src/protocol/error-codes.ts').matchAll(/^ {2}\| '([A-Z_]+)'$/gm)].map(([, code = '']) => code)
  expect(codes.length).toBeGreaterThan(60)
  const explained = new Set(firstCells('docs/errors.md'))
  expect(codes.filter((code) => !explained.has(code))).toEqual([])
  // A row may outlive its code.
  const named = [...explained].filter((name) => /^[A-Z]+(_[A-Z]+)*$/.test(name))
  expect(named.filter((name) => !codes.includes(name))).toEqual([])
})

test('every member of io has an example', () => {
  const [, body = ''] = /^export class Io\b.*\{\n([\s\S]*?)^\}/m.exec(source) ?? []
  const members = [...body.matchAll(/^ {2}(?:get )?([a-z]\w*)(?:<[^(]*>)?\(/gm)].map(([, name = '']) => name)
  const methods = new Set(members.filter((name) => name !== 'constructor'))
  expect(methods.size).toBeGreaterThan(18)
  const code = docs.flatMap(blocksOf).join('\n')
  expect([...methods].filter((name) => !new RegExp(`\\bio\\.${name}\\b`).test(code))).toEqual([])
})

test.each([
  { type: 'AppOptions', page: 'docs/options.md' },
  { type: 'RallyOptions', page: 'docs/options.md' },
  { type: 'LimitOptions', page: 'docs/options.md' },
  { type: 'TasksOptions', page: 'docs/tasks.md' },
  { type: 'TaskListOptions', page: 'docs/operations.md' },
  { type: 'TaskGetOptions', page: 'docs/operations.md' },
  { type: 'TaskRetryOptions', page: 'docs/operations.md' },
  { type: 'TaskPruneOptions', page: 'docs/operations.md' },
  { type: 'AppsOptions', page: 'docs/apps.md' },
  { type: 'PageOptions', page: 'docs/page.md' },
  { type: 'RetryOptions', page: 'docs/steps.md' },
  { type: 'LegacyOptions', page: 'docs/older-clients.md' },
  { type: 'ToolOptions', page: 'docs/start.md' },
  { type: 'HandlerOptions', page: 'docs/start.md' },
  { type: 'MethodOptions', page: 'docs/extensions.md' },
  { type: 'SkillOptions', page: 'docs/extensions.md' },
  { type: 'RequestOptions', page: 'docs/extensions.md' },
  { type: 'ServeOptions', page: 'docs/mounting.md' },
  { type: 'HttpOptions', page: 'docs/mounting.md' },
  { type: 'AdmissionOptions', page: 'docs/mounting.md' },
  { type: 'LoadOptions', page: 'docs/mounting.md' },
  { type: 'HealthOptions', page: 'docs/mounting.md' },
  { type: 'StdioOptions', page: 'docs/mounting.md' },
  { type: 'ClientOptions', page: 'docs/client.md' },
  { type: 'Answerers', page: 'docs/client.md' },
  { type: 'OAuthOptions', page: 'docs/login.md' },
  { type: 'BearerOptions', page: 'docs/callers.md' },
  { type: 'OtelOptions', page: 'docs/telemetry.md' },
  { type: 'SqliteOptions', page: 'docs/stores.md' },
  { type: 'PostgresOptions', page: 'docs/stores.md' },
  { type: 'HarshRunOptions', page: 'docs/testing.md' },
  { type: 'ToolCallOptions', page: 'docs/testing.md' },
  { type: 'RunOptions', page: 'docs/testing.md' },
])('a table of $page has every option of $type', ({ type, page }) => {
  const options = membersOf(type)
  expect(options.length).toBeGreaterThan(0)
  const listed = new Set(firstCells(page))
  expect(options.filter((name) => !listed.has(name))).toEqual([])
})

test('ARCHITECTURE.md names files that are there', () => {
  const named = [...read('ARCHITECTURE.md').matchAll(/`((?:[\w-]+\/)+(?:[\w.-]+\.ts)?)`/g)].map(([, path = '']) => path)
  expect(named.length).toBeGreaterThan(30)
  // A folder such as `revisions/` is named without its room.
  const inSource = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).map((path) => `/${path}`)
  const missing = named.filter((path) => {
    const bare = path.replace(/\/$/, '')
    return !existsSync(join(ROOT, path)) && !inSource.some((file) => file.endsWith(`/${bare}`))
  })
  expect(missing).toEqual([])
})

test('docs/state-and-keys.md says how long to keep an old key, for everything that is sealed for its own time', () => {
  const lifetimes = [...source.matchAll(/seal\.for\([^\n]*\bttl: ([\w.]+)/g)].map(([, ttl = '']) => ttl)
  const written: Record<string, string> = {
    'Math.round': '`apps.ttl`, `page.ttl` (a day)',
    PAGE_MS: '30 days',
    SESSION_MS: '24 hours',
    TOKEN_MS: '10 years',
  }
  expect(lifetimes.toSorted()).toEqual(Object.keys(written))
  const [, section = ''] = /^## Rotating keys$([\s\S]*?)^## /m.exec(read('docs/state-and-keys.md')) ?? []
  for (const time of Object.values(written)) expect(section).toContain(time)
})

test.each(['examples/README.md', ...pages])('the commands of %s run where only the package is installed', (page) => {
  const commands = [...read(page).matchAll(/^```(?:sh|text)\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) =>
    block.split('\n'),
  )
  expect(commands.filter((line) => /^(?:rally|openssl) |\$\(openssl /.test(line))).toEqual([])
})

describe('links', () => {
  test.each(pages)('of %s lead somewhere', (page) => {
    const broken = linksOf(page).filter((link) => !leadsSomewhere(page, link))
    expect(broken).toEqual([])
  })

  test('lead from the index to every page', () => {
    const linked = new Set(linksOf('docs/README.md').map((link) => `docs/${link}`))
    expect(docs.filter((page) => page !== 'docs/README.md' && !linked.has(page))).toEqual([])
  })
})

/** The names in the first cells of all tables of a page. */
function firstCells(page: string): string[] {
  const cells = [...read(page).matchAll(/^\| ([^|]*)\|/gm)].map(([, cell = '']) => cell)
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name))
}

/** Wherever in `src/` the interface is. */
function membersOf(type: string): string[] {
  const [, body = ''] =
    new RegExp(`^export interface ${type}\\b[\\s\\S]*?\\{\\n([\\s\\S]*?)^\\}`, 'm').exec(source) ?? []
  return [...body.matchAll(/^ {2}(?:readonly )?(\w+)\??:/gm)].map(([, name = '']) => name)
}

/** Relative links, outside of code. */
function linksOf(page: string): string[] {
  const prose = read(page)
    .replaceAll(/^```[\s\S]*?^```$/gm, '')
    .replaceAll(/`[^`\n]*`/g, '')
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link).filter((link) => !/^[a-z]+:/.test(link))
}

function leadsSomewhere(page: string, link: string): boolean {
  const [path = '', anchor] = link.split('#')
  const file = path === '' ? page : relative(ROOT, join(ROOT, dirname(page), path))
  if (!existsSync(join(ROOT, file))) return false
  return anchor === undefined || anchorsOf(file).includes(anchor)
}

/** As GitHub makes them of headings. */
function anchorsOf(file: string): string[] {
  const prose = read(file).replaceAll(/^```[\s\S]*?^```$/gm, '')
  return [...prose.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
}
