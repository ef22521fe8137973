// The files of docs/frameworks.md as they are, each in the framework that it is for: see package.json beside this file.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Consumer, ROOT } from '../package/consumer.ts'
import { APP, hostContract } from './contract.ts'
import { answering, freePort, killed } from './processes.ts'
import { frameworks } from './table.ts'

const page = readFileSync(join(ROOT, 'docs/frameworks.md'), 'utf8')
const sections = page.split(/^## /m).slice(1)
const mounts = new Map(sections.map((section) => [titleOf(section), codeOf(section)]))

const installed = join(import.meta.dirname, 'node_modules')
const BUN = join(installed, '@oven/bun-linux-x64/bin/bun')

/** What is not a file that Node runs. */
const special: Readonly<Record<string, Mount | undefined>> = {
  'Hono in Bun': { program: BUN },
  'Next.js': { file: 'app/mcp/route.js', start: startNext },
}

interface Mount {
  readonly program?: string
  readonly file?: string
  readonly start?: (port: number) => Promise<ChildProcess>
}

test('every framework of the page is tried', () => {
  const withCode = [...mounts].flatMap(([title, code]) => (code === undefined ? [] : [title]))
  expect(frameworks.map(({ title }) => title)).toEqual(withCode)
})

let consumer: Consumer

beforeAll(async () => {
  const names = [...new Set(frameworks.flatMap(({ packages }): readonly string[] => packages))]
  consumer = await Consumer.install(['zod'], { folder: import.meta.dirname, names })
  await consumer.write({ 'app.js': APP })
}, 60_000)
afterAll(() => consumer.remove())

describe.each(frameworks)('$title', ({ title }) => {
  const { file = `${title}.js`, program = process.execPath, start } = special[title] ?? {}
  let child: ChildProcess | undefined
  let url = ''

  beforeAll(async () => {
    const port = await freePort()
    url = `http://127.0.0.1:${port}/mcp`
    await consumer.write({ [file]: (mounts.get(title) ?? '').replace('3000', String(port)) })
    child = start === undefined ? spawn(program, [file], { cwd: consumer.folder }) : await start(port)
    child.stderr?.pipe(process.stderr)
    await answering(url, 20_000)
  }, 240_000)
  afterAll(() => killed(child))

  hostContract(title, async () => ({ url, stop: async () => {} }))
})

async function startNext(port: number): Promise<ChildProcess> {
  const next = join(installed, 'next/dist/bin/next')
  // The packages are links to where they are installed: the bundler must be allowed to follow them.
  await consumer.write({ 'next.config.js': `export default { turbopack: { root: '/' } }` })
  const options = {
    cwd: consumer.folder,
    env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1', NODE_ENV: 'production' },
  }
  await promisify(execFile)(process.execPath, [next, 'build'], { ...options, timeout: 200_000 })
  return spawn(process.execPath, [next, 'start', '-p', String(port)], options)
}

function titleOf(section: string): string {
  return section.slice(0, section.indexOf('\n'))
}

function codeOf(section: string): string | undefined {
  return /^```js\n([\s\S]*?)^```$/m.exec(section)?.[1]
}
