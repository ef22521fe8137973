// `rally init` of the packed package: the projects that it writes compile, test themselves and run.
import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { KEYS, Terminal } from '../cli/terminal.ts'
import { Consumer, ROOT } from './consumer.ts'

const { down, enter } = KEYS
const backspace = '\u007F'
const LIBRARIES = ['zod', 'valibot', '@valibot/to-json-schema', 'arktype', '@types/node', 'typescript']

/** Every schema library and every host. */
const PROJECTS = [
  { name: 'one', schema: 'zod', host: 'http', starts: 'server' },
  { name: 'two', schema: 'valibot', host: 'stdio', starts: 'server' },
  { name: 'three', schema: 'arktype', host: 'workers', starts: 'worker' },
  { name: 'four', schema: 'json-schema', host: 'http', starts: 'server' },
]

interface Manifest {
  name: string
  scripts: Record<string, string>
  dependencies: Record<string, string>
  devDependencies: Record<string, string>
}

let consumer: Consumer

beforeAll(async () => {
  consumer = await Consumer.install(LIBRARIES)
  await mkdir(join(consumer.folder, 'node_modules/.bin'))
  await symlink('../typescript/bin/tsc', join(consumer.folder, 'node_modules/.bin/tsc'))
}, 60_000)
afterAll(() => consumer.remove())

test('every project compiles as it is configured, and its test passes', { timeout: 60_000 }, async () => {
  for (const { name, schema, host } of PROJECTS) await init(name, '--schema', schema, '--host', host)
  // One compilation for all of them, with the options of the first.
  const { compilerOptions } = JSON.parse(await read('one/tsconfig.json')) as { compilerOptions: object }
  const include = PROJECTS.map(({ name }) => `${name}/src`)
  const config = { compilerOptions: { ...compilerOptions, rootDir: '.', outDir: 'all' }, include }
  await consumer.write({ 'tsconfig.json': JSON.stringify(config) })
  await execute('node_modules/.bin/tsc', [], { cwd: consumer.folder })
  const { stdout } = await execute(process.execPath, ['--test'], { cwd: join(consumer.folder, 'all') })
  expect(stdout).toMatch(/^# pass 4$/m)
})

test('npm test of a project compiles it and runs its test', { timeout: 60_000 }, async () => {
  await init('alone')
  const env = { PATH: `${join(consumer.folder, 'node_modules/.bin')}:${process.env['PATH']}` }
  const { stdout } = await execute('npm', ['test'], { cwd: join(consumer.folder, 'alone'), env })
  expect(stdout).toMatch(/^# pass 1$/m)
})

test('a project has its own name, starts a file that it has, and uses versions that we test with', async () => {
  const { devDependencies: ours, version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
    devDependencies: Record<string, string>
    version: string
  }
  const all: Record<string, string> = { ...ours, 'mcp-rally': version }
  for (const { name, starts } of PROJECTS) {
    const manifest = JSON.parse(await read(`${name}/package.json`)) as Manifest
    expect(manifest.name).toBe(name)
    const { tsx, ...used } = { ...manifest.dependencies, ...manifest.devDependencies }
    const runsTypeScript = Boolean((process.features as { typescript?: unknown }).typescript)
    expect(tsx).toEqual(runsTypeScript ? undefined : expect.any(String))
    for (const [library, range] of Object.entries(used)) expect([library, range]).toEqual([library, `^${all[library]}`])
    expect(await readdir(join(consumer.folder, name, 'src'))).toEqual(['app.test.ts', 'app.ts', `${starts}.ts`])
    expect(await read(`${name}/src/app.ts`)).toContain(`name: '${name}'`)
    // Another package on npm is called rally: outside of the project, npx would run that one. Not every system has openssl.
    expect(await read(`${name}/README.md`)).not.toMatch(/\{\{|my-server|npx rally|openssl/)
  }
  expect(await read('three/src/app.ts')).toContain('allowedHosts')
})

test('git ignores the secrets and the working files of wrangler in a project for Workers', async () => {
  expect((await read('three/.gitignore')).split('\n')).toEqual(expect.arrayContaining(['.dev.vars', '.wrangler/']))
})

test('nothing is overwritten', async () => {
  await consumer.write({ 'taken/README.md': 'Mine.' })
  await expect(init('taken')).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/taken has README\.md already, and nothing is overwritten\. Choose another folder\./),
  })
  expect(await readdir(join(consumer.folder, 'taken'))).toEqual(['README.md'])
  expect(await read('taken/README.md')).toBe('Mine.')
})

test.each([
  { path: 'afile', within: 'afile' },
  { path: 'afile/below', within: 'afile' },
  { path: 'half', within: 'half/src' },
])('$path is refused where $within is a file', async ({ path, within }) => {
  await consumer.write({ [within]: 'Mine.' })
  await expect(init(path)).rejects.toMatchObject({
    code: 2,
    stderr: `rally: init: "${within}" must be a folder, got a file. Choose another name.\n`,
  })
  expect(await read(within)).toBe('Mine.')
})

test('a folder that cannot be written is wrong use, and says why', async () => {
  await expect(init('x'.repeat(300))).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringMatching(
      /^rally: init: "x+…?" must be a folder that can be written, got ENAMETOOLONG\. Choose/,
    ),
  })
})

test('a folder whose name has a space is quoted for the shell', async () => {
  expect((await init('My Folder')).stdout).toMatch(/^ {2}cd 'My Folder'\n/)
  expect(JSON.parse(await read('My Folder/package.json'))).toMatchObject({ name: 'my-folder' })
})

test.each([
  { args: [], says: 'Nobody can be asked here. Pass --yes for the defaults' },
  {
    args: ['--yes', '--schema', 'joi'],
    says: '--schema must be one of zod, valibot, arktype, json-schema, got "joi".',
  },
  { args: ['--yes', '--host', 'deno'], says: '--host must be one of http, stdio, workers, got "deno".' },
])('$args is refused: $says', async ({ args, says }) => {
  await expect(rally('init', 'refused', ...args)).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining(says),
  })
})

test('in a terminal it asks for what was not said', async () => {
  const terminal = new Terminal(['init'])
  await terminal.answer('Name of the folder\\?\n.*my-mcp-server', `${backspace.repeat(13)}${enter}`)
  await terminal.shows(/A folder needs a name\./)
  terminal.type(`${join(consumer.folder, 'asked')}${enter}`)
  await terminal.shows(/Which schemas\?/)
  terminal.type(down + enter)
  await terminal.shows(/Where does it run\?/)
  terminal.type(down + enter)
  await terminal.shows(/npm run dev/)
  expect(await terminal.ended).toBe(0)
  expect(await read('asked/src/app.ts')).toContain("from 'valibot'")
  expect(await read('asked/src/server.ts')).toContain('await stdio(app)')
})

test('the page names every option of both commands, and the lines that rally init prints', async () => {
  const page = await readFile(join(ROOT, 'docs/developing.md'), 'utf8')
  for (const command of ['init', 'dev']) {
    const { stdout } = await rally(command, '--help')
    const options = stdout.match(/--[a-z]+/g)?.filter((option) => option !== '--help') ?? []
    expect(options.filter((option) => !page.includes(`\`${option}\``))).toEqual([])
  }
  const { stdout } = await init('printed')
  const typed = stdout.trim().replaceAll(/^ +/gm, '').replace('printed', 'my-server')
  expect(page).toContain(typed)
})

function init(folder: string, ...args: readonly string[]): Promise<{ stdout: string }> {
  return rally('init', folder, ...args, '--yes')
}

function rally(...args: readonly string[]): Promise<{ stdout: string }> {
  const cli = join(consumer.folder, 'node_modules/mcp-rally/dist/cli.js')
  return execute(process.execPath, [cli, ...args], { cwd: consumer.folder, env: { PATH: process.env['PATH'] } })
}

function read(path: string): Promise<string> {
  return readFile(join(consumer.folder, path), 'utf8')
}

const execute = promisify(execFile)
