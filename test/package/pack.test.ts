import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { rally } from 'mcp-rally'
import { connect } from 'mcp-rally/client'
import { beforeAll, expect, test } from 'vitest'
import { npmPack, ROOT } from './consumer.ts'

interface Packed {
  files: { path: string }[]
}

let paths: string[]

beforeAll(async () => {
  const { stdout } = await npmPack('--dry-run')
  const [{ files }] = JSON.parse(stdout) as [Packed]
  paths = files.map(({ path }) => path)
}, 60_000)

test('what is published is the compiled code, its types and the documents, and nothing else', () => {
  const compiled = paths.filter((path) => path.startsWith('dist/'))
  expect(paths.filter((path) => !/^(dist|docs|examples|templates)\//.test(path)).toSorted()).toEqual([
    'ARCHITECTURE.md',
    'CHANGELOG.md',
    'CONTRIBUTING.md',
    'LICENSE',
    'README.md',
    'SECURITY.md',
    'bench/README.md',
    'bench/results-all.json',
    'package.json',
  ])
  const code = compiled.filter(
    (path) => !/^dist\/(LICENSES\.txt|platform\/(libraries|libsql|cfworker)\.cjs)$/.test(path),
  )
  expect(code.filter((path) => !/\.(js|d\.ts)$/.test(path) || /\.test(-d)?\./.test(path))).toEqual([])
  // Each entry comes with its types; what entries share is beside them.
  const entries = compiled.filter((path) => /^dist\/[^/]+\.js$/.test(path))
  const typed = entries.filter((path) => compiled.includes(path.replace(/\.js$/, '.d.ts')))
  expect(typed).toEqual(entries)
  expect(compiled.filter((path) => path.endsWith('.js') && !/^dist\/(shared\/|platform\/)?[^/]+$/.test(path))).toEqual(
    [],
  )
})

test('every file that the exports and the imports name is published', async () => {
  const { exports, imports } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
    exports: Record<string, string | Record<string, string>>
    imports: Record<string, string | Record<string, string>>
  }
  const named = [...Object.values(exports), ...Object.values(imports)].flatMap((target) =>
    typeof target === 'string' ? [target] : Object.values(target),
  )
  expect(named.map((path) => path.slice('./'.length)).filter((path) => !paths.includes(path))).toEqual([])
})

test('every bin is published, and is a program that Node runs', async () => {
  const { bin } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { bin: Record<string, string> }
  expect(Object.keys(bin)).toEqual(['rally'])
  for (const path of Object.values(bin)) {
    expect(paths).toContain(path.slice('./'.length))
    expect(await readFile(join(ROOT, path), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
  }
})

test('every link of a page leads to a file of the package', async () => {
  const pages = paths.filter((path) => path.endsWith('.md') && !path.startsWith('templates/'))
  expect(pages.length).toBeGreaterThan(30)
  const broken: string[] = []
  for (const page of pages) {
    const text = await readFile(join(ROOT, page), 'utf8')
    for (const [, to = ''] of text.matchAll(/(?:\]\(|(?:src|srcset|href)=")(?!https?:|#)([^)#"\s]+)/g)) {
      const target = join(dirname(page), to).replace(/\/$/, '')
      if (!paths.some((path) => path === target || path.startsWith(`${target}/`))) broken.push(`${page}: ${to}`)
    }
  }
  expect(broken).toEqual([])
})

test('the client tells servers the version of the package', async () => {
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string }
  const app = rally({ name: 'tested', version: '1.0.0', legacy: false })
  const sent: unknown[] = []
  const client = await connect({
    dispatch: (message, context) => {
      sent.push(message)
      return app.dispatch(message, context)
    },
  })
  await client.close()
  const info = { 'io.modelcontextprotocol/clientInfo': { name: 'mcp-rally', version } }
  expect(sent[0]).toMatchObject({ params: { _meta: info } })
})

test('an installation brings few packages', async () => {
  const { dependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  // Limits to raise on purpose: with their own dependencies these are 6 packages and 4 MB.
  expect(Object.keys(dependencies)).toEqual(['ajv', 'jose'])
})

test('the licences of packages inside the build are published with it', async () => {
  expect(paths).toContain('dist/LICENSES.txt')
  const text = await readFile(join(ROOT, 'dist/LICENSES.txt'), 'utf8')
  const copyrights = text.match(/^(.*\S )?copyright .*/gim) ?? []
  expect(copyrights.length).toBeGreaterThanOrEqual(text.split('-'.repeat(80)).length)
  for (const name of ['commander', '@clack/prompts', '@cfworker/json-schema', 'oauth4webapi'])
    expect(text).toContain(name)
})
