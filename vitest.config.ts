import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

const source = (file: string): string => new URL(`./src/${file}`, import.meta.url).pathname

export default defineConfig({
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
    projects: [
      // They touch nothing outside of themselves, so the files of a worker share the modules: that halves the time.
      { extends: true, test: { name: 'rooms', include: ['src/**/*.test.ts'], isolate: false } },
      {
        extends: true,
        test: {
          name: 'system',
          include: ['test/**/*.test.ts', 'examples/**/*.test.ts'],
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
