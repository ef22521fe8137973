import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { defineConfig, type ViteUserConfig } from 'vitest/config'

const source = (file: string): string => new URL(`./src/${file}`, import.meta.url).pathname

const rooms = readdirSync(source(''), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.ts'))
  .map((file) => `src/${file}`)
/** What another file of the same process left behind would count in their time or in their memory. */
const alone = rooms.filter((file) => /useFakeTimers|expose-gc|\bgc\b/.test(readFileSync(file, 'utf8')))

/** What all configurations have in common. */
export const shared = {
  resolve: {
    alias: [
      { find: '#json-schema-libraries', replacement: source('schema/libraries/node.cjs') },
      { find: '#http-client', replacement: source('client/transports/http-node.ts') },
      { find: '#stdio-transport', replacement: source('client/transports/stdio.ts') },
      { find: '#libsql', replacement: source('store/sqlite/libsql.cjs') },
      { find: /^mcp-rally$/, replacement: source('index.ts') },
      { find: /^mcp-rally\/node$/, replacement: source('node.ts') },
      { find: /^mcp-rally\/client$/, replacement: source('client.ts') },
      { find: /^mcp-rally\/otel$/, replacement: source('otel.ts') },
      { find: /^mcp-rally\/bearer$/, replacement: source('bearer.ts') },
      { find: /^mcp-rally\/sqlite$/, replacement: source('sqlite.ts') },
      { find: /^mcp-rally\/postgres$/, replacement: source('postgres.ts') },
      { find: /^mcp-rally\/testing$/, replacement: source('testing.ts') },
    ],
  },
  test: {
    pool: 'forks',
    // Most of them wait for processes and sockets: a core for each is not what they need.
    maxWorkers: Math.max(3, availableParallelism() - 1),
    execArgv: ['--expose-gc'],
    testTimeout: 30_000,
  },
} satisfies ViteUserConfig

export default defineConfig({
  ...shared,
  test: {
    ...shared.test,
    projects: [
      // They touch nothing outside of themselves, so the files of a worker share the modules: that halves the time.
      {
        extends: true,
        test: { name: 'rooms', include: rooms.filter((file) => !alone.includes(file)), isolate: false },
      },
      {
        extends: true,
        test: {
          name: 'system',
          include: [...alone, 'test/**/*.test.ts', 'examples/**/*.test.ts'],
          typecheck: {
            enabled: true,
            include: ['**/*.test-d.ts'],
            checker: 'tsc',
            ignoreSourceErrors: true,
            tsconfig: './tsconfig.json',
          },
        },
      },
    ],
  },
})
