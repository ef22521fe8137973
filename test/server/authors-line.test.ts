// What is wrong in an app is an error when the app is built, and its stack begins with the line that the author wrote.
import { rally, resolver } from 'mcp-rally'
import { bearer } from 'mcp-rally/bearer'
import { nodeHandler, serve } from 'mcp-rally/node'
import { otel } from 'mcp-rally/otel'
import { postgres } from 'mcp-rally/postgres'
import { sqlite } from 'mcp-rally/sqlite'
import { expect, test } from 'vitest'

const app = rally({ name: 'lines', version: '1.0.0' })
const unsafe = { asks: { size: { type: 'string' } } }

test.each<{ what: string; wrong: () => unknown }>([
  { what: 'rally', wrong: () => rally({ name: 'lines', version: '1.0.0', keys: ['short'] }) },
  { what: 'rally without options', wrong: () => rally(undefined as never) },
  { what: 'rally with a logger that is null', wrong: () => rally({ name: 'a', version: '1', logger: null as never }) },
  {
    what: 'rally with a string for true',
    wrong: () => rally({ name: 'a', version: '1', showErrors: 'false' as never }),
  },
  { what: 'app.tool', wrong: () => app.tool('no spaces', {}, () => 'done') },
  { what: 'app.tool with a question that is no form', wrong: () => app.tool('size', unsafe, () => 'done') },
  { what: 'app.tool without a store', wrong: () => app.tool('later', { task: 'always' }, () => 'done') },
  { what: 'app.tool with a scope', wrong: () => app.tool('scope', { scopes: 'a:b' as never }, () => 'done') },
  { what: 'app.method', wrong: () => app.method('com.example/x', { params: { type: 'string' } }, () => ({})) },
  { what: 'app.prompt', wrong: () => app.prompt('', {}, () => 'done') },
  { what: 'app.resource', wrong: () => app.resource('nowhere', { name: 'a' }, () => 'done') },
  { what: 'app.resourceTemplate', wrong: () => app.resourceTemplate('x://{', { name: 'a' }, () => 'done') },
  { what: 'resolver', wrong: () => resolver('no spaces', { run: () => 1 }) },
  { what: 'serve', wrong: () => serve(app, { host: '0.0.0.0' }) },
  { what: 'serve with no authenticator', wrong: () => serve(app, { port: 0, authenticate: {} as never }) },
  { what: 'nodeHandler', wrong: () => nodeHandler(app, { bodyMs: -1 }) },
  { what: 'bearer', wrong: () => bearer({ issuer: '', audience: '', jwks: '' }) },
  { what: 'bearer without options', wrong: () => bearer(undefined as never) },
  { what: 'otel', wrong: () => otel({ recordArguments: 'false' as never }) },
  { what: 'sqlite', wrong: () => sqlite('http://example.com/tasks.db') },
  { what: 'postgres', wrong: () => postgres('postgres://localhost/x', { schema: 'pg_x' }) },
])('$what: the first frame of the error is in the file of the author', ({ wrong }) => {
  const error = errorOf(wrong)
  const first = error.stack?.split('\n').find((line) => line.trim().startsWith('at '))
  expect(error).toHaveProperty('code')
  expect(error.stack).toContain(error.message)
  expect(first).toContain('authors-line.test.ts')
  expect(first).toContain('wrong')
})

function errorOf(run: () => unknown): Error {
  try {
    run()
  } catch (error) {
    if (error instanceof Error) return error
  }
  throw new Error('It threw no error')
}
