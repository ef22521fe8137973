// `rally dev` as a process: a real server is changed while a call waits for its answer.
import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import type { ClientOptions, PendingCall } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { expect, onTestFinished, test } from 'vitest'
import { CLI, folder } from './cli.ts'
import { Terminal } from './terminal.ts'

const ANSWERS: ClientOptions = { onElicit: () => ({ action: 'accept', content: { choice: 'tea' } }) }

const ROOT = join(CLI, '../..')

const appSource = (word: string, keys = ''): string => `
  import { rally } from 'mcp-rally'
  export const app = rally({ name: 'shop', version: '1.0.0', ${keys} })
  app.tool('order', {}, async (_args, io) => {
    const drink = await io.choose('drink', 'Which drink?', ['tea', 'coffee'])
    await io.step('brew', () => undefined)
    return ${JSON.stringify(word)} + drink
  })
`

const HTTP = `
  import { serve } from 'mcp-rally/node'
  import { app } from './app.mjs'
  const { url } = await serve(app, { port: 0 })
  console.log('Listening on ' + url)
`

const STDIO = `
  import { stdio } from 'mcp-rally/node'
  import { app } from './app.mjs'
  await stdio(app)
`

const LIST = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/list',
  params: {
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0.0' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
})

test('a call that waits for its answer survives the reload, and each round is printed', async () => {
  const project = await newProject({ 'server.mjs': HTTP, 'app.mjs': appSource('one ') })
  const dev = new Dev(project, ['server.mjs'])
  const [, first = ''] = await dev.says(/Listening on (\S+)/)
  const call = await begin(first)
  await writeFile(join(project, 'app.mjs'), appSource('one fresh '))
  const [, second = ''] = await dev.says(/app\.mjs changed: the server restarts\.[^]*Listening on (\S+)/)
  const client = await connect(second, ANSWERS)
  expect(await client.resume(call)).toMatchObject({ content: [{ text: 'one fresh tea' }] })
  await client.close()
  const [, flow] = await dev.says(/order \[(.{4})\] tools\/call, round 1/)
  await dev.says(new RegExp(`order \\[${flow}\\] +ask drink: asks the user \\(elicitation.form\\)`))
  await dev.says(new RegExp(`order \\[${flow}\\] +step brew: completed`))
  await dev.says(new RegExp(`order \\[${flow}\\] done`))
  const key = await stat(join(project, '.rally/dev-key'))
  expect((key.mode & 0o777).toString(8)).toBe('600')
  expect(await readFile(join(project, '.rally/.gitignore'), 'utf8')).toBe('*\n')
  expect(await dev.stop('SIGINT')).toBe(130)
})

test('a server that fails to start is started again with the next change', async () => {
  const project = await newProject({ 'server.mjs': HTTP, 'app.mjs': 'const broken = ;' })
  const dev = new Dev(project, ['server.mjs'])
  await dev.says(
    /const broken = ;[^]*SyntaxError[^]*The server ended with code 1\. It starts again when a file changes\./,
  )
  await writeFile(join(project, 'app.mjs'), appSource(''))
  await dev.says(/Listening on/)
  await dev.stop('SIGTERM')
})

test.each([
  { fails: 'in Node', source: HTTP },
  {
    fails: 'in tsx',
    source: `throw new Error('Top-level await is currently not supported with the "cjs" output format')`,
  },
])('an ES module that is read as CommonJS fails $fails, and rally dev says how to repair it', async ({ source }) => {
  const project = await newProject({ 'package.json': '{ "type": "commonjs" }', 'server.js': source })
  const dev = new Dev(project, ['server.js'])
  await dev.says(/Node reads an ES module as CommonJS\. Run npm pkg set type=module\./)
  await dev.stop('SIGTERM')
})

test('a file that neither serves nor exports an app is told what to do', async () => {
  const project = await newProject({ 'library.mjs': 'export const shopApp = () => undefined' })
  const dev = new Dev(project, ['library.mjs'])
  await dev.says(/library\.mjs neither serves nor exports an app\. Call serve\(\) or stdio\(\)[^]*ended with code 0/)
  await dev.stop('SIGTERM')
})

test('a file that serves later, and has ended, is not told to serve', async () => {
  const later = STDIO.replace('await stdio(app)', 'setImmediate(() => void stdio(app))')
  const project = await newProject({ 'server.mjs': later, 'app.mjs': appSource('') })
  const dev = new Dev(project, ['server.mjs'])
  dev.input.end(`${LIST}\n`)
  expect(await dev.ended).toBe(0)
  await expect(dev.says(/neither serves/, 0)).rejects.toThrow('was not said')
})

test('keys of the author stay in use, and an app that is only exported is served', async () => {
  const keys = 'keys: ["a secret of this test, which is long enough"]'
  const project = await newProject({ 'app.mjs': appSource('', keys) })
  const dev = new Dev(project, ['app.mjs', '--port', '0'])
  const [, url = ''] = await dev.says(/Serving the exported app on (\S+)/)
  const call = await begin(url)
  await writeFile(join(project, 'app.mjs'), appSource('', keys.replace('this', 'that')))
  const [, again = ''] = await dev.says(/changed[^]*Serving the exported app on (\S+)/)
  const client = await connect(again, ANSWERS)
  await expect(client.resume(call)).rejects.toThrow(/requestState/)
  await client.close()
  await dev.stop('SIGTERM')
})

test('the client of a stdio server stays connected while it restarts', async () => {
  const project = await newProject({ 'server.mjs': STDIO, 'app.mjs': appSource('one ') })
  const client = await connect({ command: process.execPath, args: [CLI, 'dev', join(project, 'server.mjs')] }, ANSWERS)
  expect(await client.callTool('order')).toMatchObject({ content: [{ text: 'one tea' }] })
  await writeFile(join(project, 'app.mjs'), appSource('another '))
  await expect
    .poll(() => client.callTool('order').then(({ content }) => content), { timeout: 20_000 })
    .toMatchObject([{ text: 'another tea' }])
  await client.close()
})

test('a file that exports an app and serves it over standard streams ends when its client leaves', async () => {
  const exported = `${appSource('')}import { stdio } from 'mcp-rally/node'\nawait stdio(app)`
  const project = await newProject({ 'server.mjs': exported })
  const dev = new Dev(project, ['server.mjs', '--port', '0'])
  dev.input.write(`${LIST}\n`)
  await dev.says(/"tools":/)
  dev.input.end()
  expect(await dev.ended).toBe(0)
  await expect(dev.says(/Serving the exported app/, 0)).rejects.toThrow('was not said')
})

test('the client of a stdio server that does not run ends rally dev when it leaves', async () => {
  const project = await newProject({ 'server.mjs': STDIO, 'app.mjs': 'const broken = ;' })
  const dev = new Dev(project, ['server.mjs'])
  dev.input.write(`${LIST}\n`)
  await dev.says(/It starts again when a file changes/)
  dev.input.end()
  expect(await dev.ended).toBe(0)
})

test('a stdio server that fails when its client leaves is not started again', async () => {
  const failing = `${STDIO}process.exit(1)`
  const project = await newProject({ 'server.mjs': failing, 'app.mjs': appSource('') })
  const dev = new Dev(project, ['server.mjs'])
  dev.input.write(`${LIST}\n`)
  await dev.says(/"tools":/)
  dev.input.end()
  expect(await dev.ended).toBe(0)
})

test('an HTTP server without input is started again when it is repaired', async () => {
  const project = await newProject({ 'server.mjs': HTTP, 'app.mjs': 'const broken = ;' })
  const dev = new Dev(project, ['server.mjs'])
  dev.input.end()
  await dev.says(/It starts again when a file changes/)
  await writeFile(join(project, 'app.mjs'), appSource(''))
  await dev.says(/Listening on/)
  await dev.stop('SIGTERM')
})

test('TypeScript runs where Node runs it, and elsewhere rally dev says what to do', async () => {
  const project = await newProject({ 'server.ts': `const port: number = 0\n${HTTP}`, 'app.mjs': appSource('') })
  const dev = new Dev(project, ['server.ts'])
  if ((process.features as { typescript?: unknown }).typescript) {
    await dev.says(/Listening on/)
    // Killed, it would leave its server behind.
    return void (await dev.stop('SIGTERM'))
  }
  await dev.says(/Node v20\S+ does not run TypeScript\. Use Node 22\.18 or later, run npm install -D tsx/)
  expect(await dev.ended).toBe(2)
})

test.each([
  { file: 'server.mjs', says: /Listening on/ },
  { file: 'app.mjs', says: /Serving the exported app on/ },
])('$file runs in a terminal, until Ctrl-C', async ({ file, says }) => {
  const project = await newProject({ 'server.mjs': HTTP, 'app.mjs': appSource('') })
  const terminal = new Terminal(['dev', join(project, file), '--port', '0'])
  await terminal.shows(says)
  terminal.type('\u0003')
  expect(await terminal.ended).toBe(130)
})

test('a stdio server in a terminal says how to call it', async () => {
  const project = await newProject({ 'server.mjs': STDIO, 'app.mjs': appSource('') })
  const terminal = new Terminal(['dev', join(project, 'server.mjs')])
  await terminal.shows(/reads its messages from this terminal\. Call it from another one/)
  terminal.type('\u0003')
  expect(await terminal.ended).toBe(130)
})

/** A call that has stopped at its question. */
async function begin(url: string): Promise<PendingCall> {
  const client = await connect(url, ANSWERS)
  for await (const round of client.rounds({ tool: 'order', arguments: {} })) {
    if (!('pending' in round)) break
    await client.close()
    return round.pending
  }
  throw new Error('The tool asked nothing.')
}

async function newProject(files: Readonly<Record<string, string>>): Promise<string> {
  const project = await folder()
  await mkdir(join(project, 'node_modules'))
  await symlink(ROOT, join(project, 'node_modules/mcp-rally'))
  await writeFile(join(project, 'package.json'), '{ "type": "module" }')
  for (const [name, text] of Object.entries(files)) await writeFile(join(project, name), text)
  return project
}

class Dev {
  readonly ended: Promise<number | null>
  readonly input: Writable
  readonly #child: ChildProcess
  #text = ''
  #look: () => void = () => {}

  constructor(project: string, args: readonly string[]) {
    const env = { PATH: process.env['PATH'] }
    const child = spawn(process.execPath, [CLI, 'dev', ...args], { cwd: project, env, stdio: ['pipe', 'pipe', 'pipe'] })
    this.#child = child
    this.input = child.stdin
    const add = (chunk: Buffer): void => {
      this.#text += String(chunk)
      this.#look()
    }
    child.stdout.on('data', add)
    child.stderr.on('data', add)
    this.ended = once(child, 'exit').then(([code]) => code as number | null)
    onTestFinished(() => void child.kill('SIGKILL'))
  }

  says(pattern: RegExp, withinMs = 25_000): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${pattern} was not said:\n${this.#text}`)), withinMs)
      this.#look = () => {
        const found = pattern.exec(this.#text)
        if (found === null) return
        clearTimeout(timer)
        resolve(found)
      }
      this.#look()
    })
  }

  stop(signal: NodeJS.Signals): Promise<number | null> {
    this.#child.kill(signal)
    return this.ended
  }
}
