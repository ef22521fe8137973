import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { ROOT } from './consumer.ts'

const execute = promisify(execFile)
const RECORDER = fileURLToPath(new URL('./loaded.mjs', import.meta.url))

interface Loaded {
  /** Files of the package itself, from its root. */
  own: string[]
  /** Names of the packages that were loaded beside it. */
  packages: string[]
  builtin: string[]
}

/** What a program loads, in a fresh process, whichever way it is loaded. */
async function loadedBy(program: string, flags: readonly string[] = []): Promise<Loaded> {
  const args = [...flags, '--import', RECORDER, '--input-type=module', '--eval', program]
  const { stderr } = await execute(process.execPath, args, { cwd: ROOT, timeout: 20_000 })
  const { imported, required, builtin } = JSON.parse(stderr) as Record<'imported' | 'required' | 'builtin', string[]>
  const files = [...required, ...imported.filter((url) => url.startsWith('file:')).map((url) => fileURLToPath(url))]
  const packages = files.flatMap((file) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? [])
  return {
    own: files.filter((file) => file.startsWith(join(ROOT, 'dist'))).map((file) => file.slice(ROOT.length)),
    packages: [...new Set(packages)],
    builtin,
  }
}

const USE = `
  import { rally, send } from 'mcp-rally'
  const app = rally({ name: 'a', version: '1' })
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  }
`
const call = (name: string): string => `
  const { result } = await send(app, { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: '${name}', _meta } })
  if (result?.content[0].text !== 'done') throw new Error('The tool was not called.')
`

describe('importing mcp-rally', () => {
  test('loads no package and no HTTP server', async () => {
    const { own, packages, builtin } = await loadedBy(`import 'mcp-rally'`)
    expect(own).toContain('dist/index.js')
    expect(packages).toEqual([])
    expect(builtin).toContain('crypto')
    expect(builtin).not.toContain('http')
    expect(builtin).not.toContain('https')
  })

  test('and using a schema of one library loads that library and no other', async () => {
    const tool = `app.tool('one', { input: z.object({}) }, () => 'done')`
    const { packages } = await loadedBy(`import { z } from 'zod'\n${USE}\n${tool}\n${call('one')}`)
    expect(packages).toEqual(['zod'])
  })

  test('and a tool that takes nothing loads nothing', async () => {
    const { packages } = await loadedBy(`${USE}\napp.tool('one', {}, () => 'done')\n${call('one')}`)
    expect(packages).toEqual([])
  })

  test('and using a plain JSON Schema loads the validator, which is not loaded before', async () => {
    const tool = `app.tool('one', { input: { type: 'object', required: [] } }, () => 'done')`
    const { packages } = await loadedBy(`${USE}\n${tool}\n${call('one')}`)
    expect(packages).toContain('ajv')
    expect(packages.filter((name) => /zod|valibot|arktype|jose|cfworker/.test(name))).toEqual([])
  })

  test('a plain JSON Schema works in a process that forbids code generation', async () => {
    const properties = `{ env: { type: 'string' } }`
    const program = `${USE}
      app.tool('one', { input: { type: 'object', properties: ${properties} } }, ({ env }) => env)
      for (const env of ['prod', 1]) {
        const params = { name: 'one', arguments: { env }, _meta }
        const { result } = await send(app, { jsonrpc: '2.0', id: 1, method: 'tools/call', params })
        console.log(result.content[0].text)
      }
    `
    const args = ['--disallow-code-generation-from-strings', '--input-type=module', '--eval', program]
    const { stdout } = await execute(process.execPath, args, { cwd: ROOT, timeout: 20_000 })
    expect(stdout.split('\n')).toEqual([
      'prod',
      'Invalid arguments for one: /env type "number" is invalid. Expected "string"',
      '',
    ])
  })
})

test('importing mcp-rally/node loads the HTTP server', async () => {
  const { builtin } = await loadedBy(`import 'mcp-rally/node'`)
  expect(builtin).toContain('http')
})

/** As a runtime without a SQLite of its own: Node before 22.16 has none anyway. */
const NO_SQLITE = process.allowedNodeEnvironmentFlags.has('--experimental-sqlite') ? ['--no-experimental-sqlite'] : []

test('importing mcp-rally/sqlite loads libsql with the first store, and not before', async () => {
  const program = `import { sqlite } from 'mcp-rally/sqlite'\nawait sqlite(':memory:').close()`
  const { packages } = await loadedBy(program, NO_SQLITE)
  expect(packages).toContain('libsql')
  expect(packages.filter((name) => /^pg|jose|ajv/.test(name))).toEqual([])
})

test('a SQLite store says what is missing where libsql has no binary', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rally-no-driver-'))
  const libsql = join(folder, 'node_modules/libsql')
  await cp(join(ROOT, 'dist'), join(folder, 'dist'), { recursive: true })
  await mkdir(libsql, { recursive: true })
  await cp(join(ROOT, 'package.json'), join(folder, 'package.json'))
  // As where it was installed for another platform.
  await writeFile(join(libsql, 'index.js'), `require('@libsql/another-platform')`)
  await writeFile(join(libsql, 'package.json'), '{ "type": "commonjs" }')
  const program = `
    import { sqlite } from './dist/sqlite.js'
    try {
      sqlite(':memory:')
    } catch ({ code, message }) {
      console.log(code, message)
    }
  `
  const args = [...NO_SQLITE, '--input-type=module', '--eval', program]
  const { stdout } = await execute(process.execPath, args, { cwd: folder })
  await rm(folder, { recursive: true })
  expect(stdout).toMatch(/^STORE_DRIVER_MISSING .* Run `npm install libsql`, with optional dependencies\.\n$/)
})

// Limits to raise on purpose.
test.each([
  { entry: 'mcp-rally', most: 523, packages: [] },
  { entry: 'mcp-rally/node', most: 124, packages: [] },
  { entry: 'mcp-rally/bearer', most: 40, packages: ['jose'] },
  { entry: 'mcp-rally/otel', most: 20, packages: ['@opentelemetry/api'] },
  { entry: 'mcp-rally/sqlite', most: 56, packages: [] },
  { entry: 'mcp-rally/postgres', most: 79, packages: [] },
  { entry: 'mcp-rally/testing', most: 442, packages: [] },
])('$entry loads at most $most KiB of our code, and of other packages $packages', async (expected) => {
  const { own, packages } = await loadedBy(`import '${expected.entry}'`)
  const sizes = await Promise.all(own.map(async (file) => (await readFile(join(ROOT, file))).length))
  const size = sizes.reduce((sum, bytes) => sum + bytes, 0) / 1024
  expect(size).toBeGreaterThan(1)
  expect(size).toBeLessThanOrEqual(expected.most)
  expect(packages).toEqual(expected.packages)
})
