// docs/comparison.md and the table of the README: the versions are those that we measure, and what is said of the official SDK, which is
// installed here, is still in its files.
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ROOT } from './consumer.ts'

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')

interface Manifest {
  readonly dependencies: Record<string, string>
  readonly devDependencies: Record<string, string>
}

const page = read('docs/comparison.md')
const { devDependencies } = JSON.parse(read('package.json')) as Manifest
const { dependencies } = JSON.parse(read('bench/all/package.json')) as Manifest

test.each([
  { name: 'official v2', version: devDependencies['@modelcontextprotocol/server'] },
  { name: 'official v2', version: devDependencies['@modelcontextprotocol/client'] },
  { name: 'official v1', version: devDependencies['@modelcontextprotocol/sdk'] },
  { name: 'FastMCP', version: dependencies['fastmcp'] },
  { name: 'mcp-use', version: dependencies['mcp-use'] },
])('$name was read in the version that is measured, $version', ({ name, version }) => {
  const rows = page.split('\n').filter((line) => line.startsWith(`| ${name} `))
  expect(rows.map((row) => row.split('|').at(-2)?.trim())).toEqual([version])
})

describe('the official SDK', () => {
  test.each([
    { file: 'server/dist/index.d.mts', says: 'The codec is **signed, not encrypted**' },
    { file: 'server/dist/index.d.mts', says: 'The SDK applies no protection of its own' },
    { file: 'server/dist/index.d.mts', says: 'InMemoryTransport' },
    { file: 'server/dist/mcp-*.d.mts', says: 'Throws on a 2026-07-28-era request — return `inputRequired(...)`' },
    { file: 'server/dist/mcp-*.d.mts', says: 'legacy shim fulfils them server-side' },
    { file: 'server/dist/mcp-*.d.mts', says: 'initialize (stateless legacy) hold nothing, so gates refuse there' },
    { file: 'server/dist/mcp-*.d.mts', says: 'Task methods are 2025-11-25 wire vocabulary with no SDK runtime' },
    { file: 'server/dist/createMcpHandler-*.d.mts', says: "`'stateless'` (the default" },
    { file: 'client/dist/index.d.mts', says: 'interface OAuthClientProvider {' },
    { file: 'client/dist/client-*.d.mts', says: "callTool(params: CallToolRequest['params']," },
    { file: 'sdk/dist/esm/types.js', says: "LATEST_PROTOCOL_VERSION = '2025-11-25'" },
    { file: 'sdk/dist/esm/shared/protocol.js', says: 'this._responseHandlers = new Map()' },
    { file: 'sdk/dist/esm/experimental/tasks/interfaces.d.ts', says: 'These APIs are experimental' },
    { file: 'sdk/dist/esm/inMemory.d.ts', says: 'InMemoryTransport' },
    { file: 'sdk/dist/esm/server/webStandardStreamableHttp.d.ts', says: 'Cloudflare Workers, Deno, Bun' },
    { file: 'sdk/dist/esm/server/auth/providers/proxyProvider.d.ts', says: 'ProxyOAuthServerProvider' },
  ])('says in $file: $says', ({ file, says }) => {
    expect(filesLike(join('node_modules/@modelcontextprotocol', file)).some((path) => read(path).includes(says))).toBe(
      true,
    )
  })

  test.each(['server', 'client', 'node', 'sdk'])('has no OpenTelemetry, in %s', (name) => {
    expect(read(`node_modules/@modelcontextprotocol/${name}/package.json`)).not.toContain('@opentelemetry')
  })

  test('has one store of tasks in v1, in memory', () => {
    const stores = readdirSync(join(ROOT, 'node_modules/@modelcontextprotocol/sdk/dist/esm/experimental/tasks/stores'))
    expect(stores.filter((name) => name.endsWith('.js'))).toEqual(['in-memory.js'])
  })
})

/** Bundlers put a digest into the names of files. */
function filesLike(pattern: string): string[] {
  const [folder, name] = [dirname(pattern), basename(pattern)]
  const [before = '', after] = name.split('*')
  return readdirSync(join(ROOT, folder))
    .filter((file) => (after === undefined ? file === name : file.startsWith(before) && file.endsWith(after)))
    .map((file) => join(folder, file))
}
