// The package in bundles: a server as one file without node_modules, and the client for browsers.
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import * as esbuild from 'esbuild'
import * as vite from 'vite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import webpack from 'webpack'
import { Consumer } from './consumer.ts'

const execute = promisify(execFile)

const SERVER = `
  import { rally } from 'mcp-rally'
  import { connect } from 'mcp-rally/client'
  import { serve } from 'mcp-rally/node'
  const properties = { env: { type: 'string', minLength: 1 } }
  const app = rally({ name: 'bundled', version: '1.0.0' })
  app.tool('deploy', { input: { type: 'object', properties, required: ['env'] } }, async ({ env }, io) =>
    (await io.confirm('sure', 'Sure?')) ? 'Deployed ' + env : 'Not deployed',
  )
  const $schema = 'http://json-schema.org/draft-07/schema#'
  app.tool('older', { input: { $schema, type: 'object', properties } }, ({ env }) => env)
  const texts = []
  const serving = await serve(app, { port: 0, handleSignals: false })
  for (const server of [app, serving.url]) {
    const client = await connect(server, { onElicit: async () => ({ action: 'accept', content: { confirm: true } }) })
    for (const [tool, args] of [['deploy', { env: 'prod' }], ['deploy', { env: '' }], ['older', { env: 'x' }]]) {
      texts.push((await client.callTool(tool, args)).content[0].text)
    }
    await client.close()
  }
  await serving.close()
  console.log(JSON.stringify(texts))
`

/** A handler that forgets \`await\`, before its pass has ended and after. Prints what the log says about it. */
const FORGETFUL = `
  import { rally } from 'mcp-rally'
  import { connect } from 'mcp-rally/client'
  const logger = { warn: (message, { error }) => console.log(error?.stack ?? message), error: () => {} }
  const app = rally({ name: 'forgetful', version: '1.0.0', logger })
  app.tool('open', {}, (_args, io) => {
    void io.confirm('sure', 'Sure?')
    return 'done'
  })
  app.tool('late', {}, (_args, io) => {
    setTimeout(() => io.sleep('late', 1))
    return 'done'
  })
  app.tool('failed', {}, (_args, io) => {
    void io.step('failed', () => Promise.reject(new Error('failed')))
    return 'done'
  })
  const client = await connect(app, { onElicit: () => ({ action: 'cancel' }) })
  for (const tool of ['open', 'late', 'failed']) await client.callTool(tool, {}).catch(() => {})
  await client.close()
`

const BROWSER = `
  import { connect } from 'mcp-rally/client'
  export async function call(url) {
    const client = await connect(url, { onElicit: async () => ({ action: 'accept', content: { confirm: true } }) })
    return client.callTool('deploy', { env: 'prod' })
  }
`

let consumer: Consumer
beforeAll(async () => {
  consumer = await Consumer.install([])
  await consumer.write({ 'server.mjs': SERVER, 'forgetful.mjs': FORGETFUL, 'browser.mjs': BROWSER })
}, 60_000)
afterAll(() => consumer.remove())

/** The code of the lines that the log names: of a stack, the first one. */
async function linesNamed(program: string): Promise<string[]> {
  const { stdout } = await execute(process.execPath, [program], { cwd: consumer.folder, timeout: 20_000 })
  const source = (await readFile(join(consumer.folder, program), 'utf8')).split('\n')
  const positions = stdout.matchAll(
    /(?:called|made) at (\S+):(\d+):\d+\.$|did not await it.*\n *at .*?(file:\S+):(\d+):/gm,
  )
  return [...positions]
    .map(([, file, line, stackFile, stackLine]) => {
      expect(file ?? stackFile).toContain(program)
      return (source[Number(line ?? stackLine) - 1] ?? '').trim()
    })
    .toSorted()
}

const FORGOTTEN = [/^setTimeout\(\(\) => io\.sleep\(/, /^void io\.confirm\(/, /^void io\.step\(/].map((line): unknown =>
  expect.stringMatching(line),
)

test('the log names the line of the author that forgot an await', async () => {
  expect(await linesNamed('forgetful.mjs')).toEqual(FORGOTTEN)
})

describe('a server that esbuild bundles into one file', () => {
  test('names the line of the author that forgot an await', async () => {
    await esbuild.build({
      ...NO_CONFIG,
      entryPoints: [join(consumer.folder, 'forgetful.mjs')],
      outfile: join(consumer.folder, 'forgetful-out.mjs'),
      platform: 'node',
      format: 'esm',
    })
    expect(await linesNamed('forgetful-out.mjs')).toEqual(FORGOTTEN)
  })

  test('works without node_modules, with plain JSON Schema too', async () => {
    const out = join(consumer.folder, 'server-out.mjs')
    const { warnings } = await esbuild.build({
      ...NO_CONFIG,
      entryPoints: [join(consumer.folder, 'server.mjs')],
      outfile: out,
      platform: 'node',
      format: 'esm',
    })
    expect(warnings).toEqual([])
    const away = await mkdtemp(join(tmpdir(), 'rally-bundle-'))
    try {
      await rename(out, join(away, 'server.mjs'))
      const { stdout } = await execute(process.execPath, ['server.mjs'], { cwd: away, timeout: 20_000 })
      const invalid = 'Invalid arguments for deploy: /env must NOT have fewer than 1 characters'
      expect(JSON.parse(stdout)).toEqual(['Deployed prod', invalid, 'x', 'Deployed prod', invalid, 'x'])
    } finally {
      await rm(away, { recursive: true })
    }
  })
})

describe('the client, bundled for a browser', () => {
  test('has types that need the DOM and no types of Node', async () => {
    const text = `
      import { connect } from 'mcp-rally/client'
      export async function call(url: URL): Promise<string> {
        const client = await connect(url, { onElicit: () => ({ action: 'accept', content: { confirm: true } }) })
        const { content } = await client.callTool('deploy', { env: 'prod' })
        document.title = client.server.name
        return content.map((block) => (block.type === 'text' ? block.text : '')).join('')
      }
    `
    await consumer.write({ 'page.ts': text })
    expect(await consumer.compile(['page.ts'], { lib: ['ES2023', 'DOM'], types: [] })).toBe('')
  })

  test('by esbuild, without a warning', async () => {
    const { warnings, outputFiles } = await esbuild.build({
      ...NO_CONFIG,
      entryPoints: [join(consumer.folder, 'browser.mjs')],
      platform: 'browser',
      format: 'esm',
      write: false,
    })
    expect(warnings).toEqual([])
    expectNoNode(outputFiles.map(({ text }) => text))
  })

  // Limits to raise on purpose.
  test('is small, and has OAuth in a file of its own that is loaded when it is used', async () => {
    const { outputFiles, metafile } = await esbuild.build({
      ...NO_CONFIG,
      entryPoints: [join(consumer.folder, 'browser.mjs')],
      outdir: join(consumer.folder, 'split'),
      platform: 'browser',
      format: 'esm',
      splitting: true,
      minify: true,
      metafile: true,
      write: false,
    })
    const sizeOf = (paths: readonly string[]): number => {
      const files = paths.map((path) => outputFiles.find((file) => file.path === join(process.cwd(), path)))
      return files.reduce((sum, file) => sum + gzipSync(file?.contents ?? '').length, 0) / 1024
    }
    const { outputs } = metafile
    const all = Object.keys(outputs)
    const hasOAuth = (path: string): boolean =>
      Object.keys(outputs[path]?.inputs ?? {}).some((file) => /shared\/oauth-/.test(file))
    const first = loadedFirst(outputs)
    const sizes = { first: sizeOf(first), oauth: sizeOf(all.filter(hasOAuth)), all: sizeOf(all) }
    expect(first.filter(hasOAuth)).toEqual([])
    console.log('The client in a browser, KiB minified and compressed:', sizes)
    expect(sizes.first).toBeGreaterThan(5)
    expect(sizes.first).toBeLessThanOrEqual(46)
    expect(sizes.oauth).toBeGreaterThan(5)
    expect(sizes.oauth).toBeLessThanOrEqual(16)
  })

  test('by vite, without a warning', async () => {
    const said: string[] = []
    const note = (message: string): void => void said.push(message)
    const built = (await vite.build({
      root: consumer.folder,
      configFile: false,
      customLogger: { ...vite.createLogger('silent'), warn: note, warnOnce: note, error: note },
      build: { write: false, minify: false, lib: { entry: join(consumer.folder, 'browser.mjs'), formats: ['es'] } },
    })) as { output: { code?: string }[] }[]
    expect(said).toEqual([])
    expectNoNode(built.flatMap(({ output }) => output.map(({ code = '' }) => code)))
  })

  test('by webpack, without a warning', async () => {
    const path = join(consumer.folder, 'webpack')
    const stats = await new Promise<webpack.Stats | undefined>((resolve, reject) => {
      webpack(
        {
          context: consumer.folder,
          entry: './browser.mjs',
          mode: 'production',
          target: 'web',
          performance: false,
          optimization: { minimize: false },
          experiments: { outputModule: true },
          output: { path, library: { type: 'module' } },
        },
        (error, done) => (error ? reject(error) : resolve(done)),
      )
    })
    expect(stats?.toJson({ all: false, warnings: true, errors: true })).toMatchObject({ warnings: [], errors: [] })
    const files = await readdir(path)
    expectNoNode(await Promise.all(files.map((file) => readFile(join(path, file), 'utf8'))))
  })
})

/** The bundle of a user, who has no TypeScript configuration of ours. */
const NO_CONFIG = { bundle: true, logLevel: 'silent', tsconfigRaw: '{}' } as const

/** The entry and what it imports at once. */
function loadedFirst(outputs: esbuild.Metafile['outputs']): string[] {
  const loaded = new Set(Object.keys(outputs).filter((path) => outputs[path]?.entryPoint?.endsWith('browser.mjs')))
  for (const path of loaded) {
    for (const { path: next, kind } of outputs[path]?.imports ?? []) if (kind === 'import-statement') loaded.add(next)
  }
  return [...loaded]
}

function expectNoNode(texts: readonly string[]): void {
  const text = texts.join('\n')
  expect(text.includes('callTool')).toBe(true)
  expect(
    text.match(/.{0,60}(?:(?:from|import|import\() ?['"]node:|\brequire\(|child_process|new Function\().{0,60}/g),
  ).toBeNull()
}
