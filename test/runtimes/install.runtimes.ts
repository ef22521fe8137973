// The first command lines of the README, on a machine with only Node: nothing of this clone is there but the packed package.
import { execFile, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { npmPack, ROOT } from '../package/consumer.ts'
import { blocksOf } from '../package/snippets/run.ts'
import { answering, ended, freePort } from './processes.ts'

const execute = promisify(execFile)

/** Limits to raise on purpose. */
const MAX_PACKAGES = 10
const MAX_BYTES = 7_000_000

test('the first command lines of the README install, serve and call', async () => {
  const [, block = ''] = /```sh\n(npm init [\s\S]*?)```/.exec(readFileSync(join(ROOT, 'README.md'), 'utf8')) ?? []
  const [init = '', install = '', dev = '', call = ''] = block
    .split('\n')
    .map((line) => line.replace(/ +#.*/, '').trim())
  expect(dev).toBe('npx mcp-rally dev server.mjs')

  const folder = await mkdtemp(join(tmpdir(), 'rally-only-node-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const { stdout: packed } = await npmPack('--pack-destination', folder)
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }]
  const env = { PATH: process.env['PATH'], HOME: process.env['HOME'] }
  const run = (line: string, ...more: string[]): Promise<{ stdout: string }> => {
    const [program = '', ...args] = line.split(' ')
    return execute(program, [...args, ...more], { cwd: folder, env, timeout: 100_000 })
  }

  await run(init)
  // Without zod first: it is the user's choice.
  await run(install.replace('mcp-rally', `./${filename}`).replace(' zod', ''))
  const { packages, bytes } = await installedIn(folder)
  console.log(`npm install mcp-rally: ${packages} packages, ${(bytes / 1e6).toFixed(1)} MB`)
  expect(packages).toBeLessThanOrEqual(MAX_PACKAGES)
  expect(bytes).toBeLessThanOrEqual(MAX_BYTES)
  await run(install.replace('mcp-rally', `./${filename}`))

  const start = readFileSync(join(ROOT, 'docs/start.md'), 'utf8')
  const [, greet = ''] = /`(npx mcp-rally call [^`]*)`/.exec(start) ?? []
  await writeFile(join(folder, 'answers.json'), '{ "confirm": { "confirm": true }, "who": { "name": "Ada" } }')
  for (const { page, line, says } of [
    { page: 'README.md', line: call, says: /^Deployed build \d+ to prod\.$/ },
    { page: 'docs/start.md', line: greet, says: /^Hello, Ada!$/ },
  ]) {
    const port = String(await freePort())
    await writeFile(join(folder, 'server.mjs'), (blocksOf(page)[0] ?? '').replace('3000', port))
    const words = [join(folder, 'node_modules/.bin/rally'), 'dev', 'server.mjs']
    const server = spawn(process.execPath, words, { cwd: folder, env, stdio: ['pipe', 'ignore', 'inherit'] })
    onTestFinished(() => ended(server))
    await answering(`http://127.0.0.1:${port}/mcp`)
    const { stdout } = await run(line.replace('3000', port), '--answers', 'answers.json')
    expect(stdout.trim()).toMatch(says)
    // It watches the folder, and would run the next server too.
    await ended(server)
  }
}, 240_000)

/** What npm has put there, without its own list. */
async function installedIn(folder: string): Promise<{ packages: number; bytes: number }> {
  const modules = join(folder, 'node_modules')
  const { packages } = JSON.parse(readFileSync(join(modules, '.package-lock.json'), 'utf8')) as { packages: object }
  let bytes = 0
  for (const file of await readdir(modules, { recursive: true, withFileTypes: true })) {
    if (file.isFile()) bytes += (await stat(join(file.parentPath, file.name))).size
  }
  return { packages: Object.keys(packages).length, bytes }
}
