// Runs the snippets of all pages against the packed package: one compilation, one process.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Consumer } from '../consumer.ts'
import { ROOT } from '../consumer.ts'
import type { Page, Snippet } from './page.ts'
import { AUTHORIZATION_SERVER } from './login.ts'
import { TALK } from './talk.ts'

export interface Outcome {
  readonly name: string
  readonly expected: readonly string[]
  readonly printed: readonly string[]
}

/** The TypeScript blocks of a page, in order. */
export function blocksOf(file: string): string[] {
  const text = readFileSync(join(ROOT, file), 'utf8')
  return [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = '']) => code)
}

/** Throws what the compiler says, where it says anything. */
export async function runPages(consumer: Consumer, pages: readonly Page[]): Promise<Outcome[]> {
  const modules = pages.flatMap(modulesOf)
  const names = modules.map(({ name }) => name)
  const sources = Object.fromEntries(modules.map(({ name, code }) => [`${name}.ts`, code]))
  const helpers = { 'talk.ts': TALK, 'authorization-server.ts': AUTHORIZATION_SERVER }
  await consumer.write({ ...helpers, 'run.mjs': runner(names), ...sources })
  const complaints = await consumer.compile([...Object.keys(helpers), ...Object.keys(sources)])
  if (complaints !== '') throw new Error(complaints)
  const { stdout } = await consumer.run('run.mjs')
  const printed = JSON.parse(stdout) as Record<string, string[]>
  return modules.map(({ name, expected }) => ({ name, expected, printed: printed[name] ?? [] }))
}

interface SnippetModule {
  name: string
  code: string
  expected: readonly string[]
}

function modulesOf({ file, given, snippets }: Page): SnippetModule[] {
  const blocks = blocksOf(file)
  const prefix = file.replace(/^docs\//, '').replace(/\.md$/, '')
  const modules: SnippetModule[] = []
  let before = { code: '', announced: [] as string[] }
  for (const [index, snippet] of snippets.entries()) {
    const own = { code: readyToRun(blocks[index] ?? '', snippet, file), announced: announcedBy(blocks[index] ?? '') }
    const whole = snippet.continues
      ? { code: `${before.code}\n${own.code}`, announced: [...before.announced, ...own.announced] }
      : { code: `${snippet.given ?? given}\n${own.code}`, announced: own.announced }
    modules.push({
      name: `${prefix}-${index + 1}`,
      code: `${HELPERS}${whole.code}\n{ ${snippet.use ?? ''}\n}\nexport {}\n`,
      expected: [...whole.announced, ...(snippet.prints ?? [])],
    })
    before = whole
  }
  return modules
}

function readyToRun(block: string, { but = [] }: Snippet, file: string): string {
  let code = block
  for (const [text, instead] of but) {
    if (!code.includes(text)) throw new Error(`${file}: a snippet has no ${JSON.stringify(text)} to replace.`)
    code = code.replace(text, instead)
  }
  return code
}

/** What the block says that it logs. */
function announcedBy(block: string): string[] {
  return [...block.matchAll(/\/\/ => (.*)$/gm)].map(([, line = '']) => line.trim())
}

const HELPERS = `
import { once as onceEmitted } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { accept as accepted, goRound, talk } from './talk.js'
`

/** Imports one snippet after the other, and collects what each logs. */
function runner(names: readonly string[]): string {
  return `
    import { inspect } from 'node:util'
    const shown = (value) => typeof value === 'string' ? value : inspect(value, { depth: 8, breakLength: Infinity })
    const printed = {}
    for (const name of ${JSON.stringify(names)}) {
      const lines = (printed[name] = [])
      console.log = (...values) => lines.push(...values.map(shown).join(' ').split('\\n'))
      await import('./' + name + '.js').catch((error) => lines.push('threw ' + error?.stack))
    }
    process.stdout.write(JSON.stringify(printed), () => process.exit())
  `
}
