// The pages for those who run servers, and for those who call them.
import type { Page } from './page.ts'
import { APP } from './page.ts'

const HELLO = `
  app.tool('hello', { asks: { name: z.object({ name: z.string() }) } }, async (_args, io) => {
    const { name } = await io.ask('name', 'Your name?')
    await io.step('count', ({ progress }) => progress(1, 1))
    return 'Hello, ' + name
  })
`

/** Posts an empty body as if to this host, and logs the status and what else is asked for. */
const post = (host: string, more = ''): string => `{
  const headers = { Host: '${host}', 'Content-Type': 'application/json' }
  const posted = httpRequest(serving.url, { method: 'POST', headers, agent: false })
  posted.end('{}')
  const [response] = (await onceEmitted(posted, 'response')) as [IncomingMessage]
  console.log(response.statusCode${more})
  response.resume()
  await onceEmitted(response, 'end')
}`

const ANY_PORT = ["host: '0.0.0.0',", "host: '127.0.0.1', port: 0,"] as const

export const runningPages: readonly Page[] = [
  {
    file: 'docs/mounting.md',
    given: `${APP}
      import { createServer } from 'node:http'
      import { PassThrough } from 'node:stream'
      import { nodeHandler, stdio } from 'mcp-rally/node'
    `,
    snippets: [
      { has: 'serve(app, { port: 3000 })', but: [['port: 3000', 'port: 0']] },
      {
        has: 'nodeHandler(app)',
        use: `
          await onceEmitted(server.listen(0, '127.0.0.1'), 'listening')
          const { port } = server.address() as { port: number }
          const client = await connect('http://127.0.0.1:' + port + '/mcp')
          console.log(client.server.name)
          await client.close()
          console.log(await (await fetch('http://127.0.0.1:' + port)).text())
          server.close()
        `,
        prints: ['docs', 'Something else.'],
      },
      { has: 'app.fetch(' },
      {
        has: 'allowedOrigins: [',
        but: [['port: 3000', 'port: 0']],
        use: `
          const headers = { origin: 'https://app.example.com', 'access-control-request-method': 'POST' }
          const { status, headers: given } = await fetch(url, { method: 'OPTIONS', headers })
          console.log(status, given.get('access-control-allow-origin'))
          await close()
        `,
        prints: ['204 https://app.example.com'],
      },
      {
        has: 'await stdio(app)',
        but: [['await stdio(app)', 'const input = new PassThrough()\ninput.end()\nawait stdio(app, { input })']],
        use: "console.log('ended')",
        prints: ['ended'],
      },
    ],
  },
  {
    file: 'docs/state-and-keys.md',
    given: `
      import { MemoryStore, rally } from 'mcp-rally'
      process.env['RALLY_KEY'] = 'a secret that comes from the environment'
    `,
    snippets: [
      { has: 'keys: [RALLY_KEY]', use: 'console.log(app.info.name)', prints: ['deployer'] },
      {
        has: 'once: store.once',
        use: `
          await talk(shop, 'buy', {}, [{}, { sure: accepted({ confirm: true }) }])
        `,
        prints: ['Buy it?', 'Bought.'],
      },
    ],
  },
  {
    file: 'docs/stores.md',
    given: `${APP.replace('const app', 'export const other')}
      import { sqlite } from 'mcp-rally/sqlite'
      import { postgres } from 'mcp-rally/postgres'
    `,
    snippets: [
      {
        has: "sqlite('rally.db')",
        use: `
          app.tool('hello', {}, async (_args, io) => ((await io.confirm('sure', 'Sure?')) ? 'Hello.' : 'Well then.'))
          await talk(app, 'hello', {}, [{}, { sure: accepted({ confirm: true }) }])
          await store.close()
          await talk(app, 'hello', {}, [{}, { sure: accepted({ confirm: true }) }]).catch(() => console.log('closed'))
        `,
        prints: ['Sure?', 'Hello.', 'Sure?', 'closed'],
      },
      { has: 'postgres(', use: 'console.log(Object.keys(fleet).length); await fleet.close()', prints: ['4'] },
    ],
  },
  {
    file: 'docs/callers.md',
    given: `${APP}
      import { AuthenticationError, send, type Authenticate } from 'mcp-rally'
      import { bearer } from 'mcp-rally/bearer'
      const findSession = async (cookie: string | undefined) =>
        cookie === undefined ? undefined : { id: cookie, roles: ['deploy:write'], department: 'sales', blocked: cookie === 'mallory' }
    `,
    snippets: [
      {
        has: 'bearer({',
        but: [ANY_PORT],
        use: `${post('mcp.example.com', ", response.headers['www-authenticate']")}\nawait serving.close()`,
        prints: [
          '401 Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp", scope="mcp"',
        ],
      },
      {
        has: 'io.caller?.scopes',
        use: `
          const meta = {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientCapabilities': {},
            'io.modelcontextprotocol/clientInfo': { name: 'docs', version: '1' },
          }
          const message = {
            jsonrpc: '2.0',
            id: 1,
            method: 'tools/call',
            params: { name: 'approve', arguments: { id: 'e7' }, _meta: meta },
          }
          const as = async (scopes: string[]) => {
            const caller = { principal: 'ada', scopes, claims: { department: 'sales' } }
            const response = await send(app, message, { caller })
            console.log(JSON.stringify((response as { result: { content: { text: string }[] } }).result.content[0]?.text))
          }
          await as([])
          await as(['expenses:approve'])
        `,
        prints: ['"You may not approve expenses."', '"Approved e7 for sales, through docs, no ticket."'],
      },
      {
        has: 'new AuthenticationError(',
        use: `
          const as = async (cookie?: string) =>
            authenticate({ method: 'POST', url: '/mcp', header: () => cookie })
          console.log(await as())
          console.log(await as('ada'))
          console.log(await Promise.resolve(as('mallory')).catch((error: AuthenticationError) => error.status))
        `,
        prints: [
          'undefined',
          "{ principal: 'ada', scopes: [ 'deploy:write' ], claims: { department: 'sales' } }",
          '403',
        ],
      },
      {
        has: 'visible:',
        use: `
          const tools = async (department: string) => {
            const _meta = {
              'io.modelcontextprotocol/protocolVersion': '2026-07-28',
              'io.modelcontextprotocol/clientCapabilities': {},
            }
            const message = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta } }
            const response = await send(app, message, { caller: { principal: 'ada', claims: { department } } })
            console.log((response as unknown as { result: { tools: unknown[] } }).result.tools.length)
          }
          await tools('sales')
          await tools('support')
        `,
        prints: ['0', '1'],
      },
    ],
  },
  {
    file: 'docs/running.md',
    given: `
      import { rally } from 'mcp-rally'
      import { serve } from 'mcp-rally/node'
      process.env['RALLY_KEYS'] = 'the new secret of the environment that is long,the old secret of the environment that is long'
      process.env['DATABASE_URL'] = 'postgres://127.0.0.1:1/never-used'
    `,
    snippets: [
      {
        has: 'RALLY_KEYS.split',
        but: [
          ['port: 3000', 'port: 0'],
          // The environment of this test has no database.
          ["import { postgres } from 'mcp-rally/postgres'", "import { MemoryStore } from 'mcp-rally'"],
          ['store: postgres(DATABASE_URL)', 'store: new MemoryStore()'],
        ],
        use: 'console.log((await fetch(new URL("/readyz", serving.url.replace("0.0.0.0", "127.0.0.1")))).status, DATABASE_URL.length)\nawait serving.close()',
        prints: ['200 33'],
      },
      {
        has: 'pino.destination(2)',
        given: `
          import { rally } from 'mcp-rally'
          import { pino } from 'pino'
        `,
        use: 'console.log(app.info.name)',
        prints: ['deployer'],
      },
      {
        has: 'log.log(',
        // winston itself is not installed here: this is the one function of it that the page uses.
        given: `
          import { inspect } from 'node:util'
          import { rally, type LogFields, type LoggerLevel } from 'mcp-rally'
          const log = { log: (entry: { level: string; message: string; [name: string]: unknown }) => console.log(entry) }
        `,
        use: `
          app.logger.warn('100 %s', { error: new RangeError('Too far.').message, tool: 'pay' })
          app.logger.info?.('Hi.')
        `,
        prints: [
          `{ tool: 'pay', error: "'Too far.'", level: 'warn', message: '100 %s' }`,
          `{ error: undefined, level: 'info', message: 'Hi.' }`,
        ],
      },
    ],
  },
  {
    file: 'docs/deploying.md',
    given: `
      import { createServer } from 'node:http'
      import { rally, type Bus, type ChangeEvent } from 'mcp-rally'
      import { serve } from 'mcp-rally/node'
      process.env['RALLY_KEY'] = 'a secret that comes from the environment'
    `,
    snippets: [
      {
        has: 'shed: { lagMs: 200 }',
        but: [ANY_PORT],
        use: `${post('mcp.example.com')}\n${post('elsewhere.example.com')}\nawait serving.close()`,
        prints: ['400', '403'],
      },
      {
        has: 'app.interrupt()',
        given: `
          import { createServer } from 'node:http'
          import { rally } from 'mcp-rally'
          const app = rally({ name: 'docs', version: '1.0.0' })
          const server = createServer().listen(0)
          const closed = onceEmitted(server, 'close')
          const DRAIN_DELAY_MS = 10
        `,
        use: "process.emit('SIGTERM')\nawait closed\nconsole.log(app.draining)",
        prints: ['true'],
      },
      {
        has: 'app.readiness()',
        given: `
          import { rally } from 'mcp-rally'
          const app = rally({ name: 'docs', version: '1.0.0' })
          app.failReadiness()
        `,
        use: 'console.log(response.status, await response.text())',
        prints: ['503 the instance is shutting down'],
      },
      {
        has: 'const bus: Bus',
        use: `
          bus.subscribe((change) => console.log(change))
          app.notify.toolsChanged()
        `,
        prints: ["{ type: 'tools' }"],
      },
    ],
  },
  {
    file: 'docs/older-clients.md',
    given: APP,
    snippets: [
      {
        has: "revision: '2025-06-18'",
        but: [['port: 3000', 'port: 0']],
        use: 'await client.close()\nawait close()',
      },
    ],
  },
  {
    file: 'docs/drafts.md',
    given: `
      import { rally } from 'mcp-rally'
      import { connect } from 'mcp-rally/client'
      import { serve } from 'mcp-rally/node'
    `,
    snippets: [
      {
        has: "revision: '2026-06-XX'",
        but: [['port: 3000', 'port: 0']],
        use: 'await client.close()\nawait close()',
      },
    ],
  },
  {
    file: 'docs/telemetry.md',
    given: `
      import { rally } from 'mcp-rally'
      import { connect } from 'mcp-rally/client'
      import { otel } from 'mcp-rally/otel'
    `,
    snippets: [
      {
        has: 'otel()',
        use: `
          app.tool('greet', {}, () => 'Hello.')
          console.log((await client.callTool('greet')).content)
          await client.close()
        `,
        prints: ["[ { type: 'text', text: 'Hello.' } ]"],
      },
    ],
  },
  {
    file: 'docs/observers.md',
    given: `
      import { type Observer, rally } from 'mcp-rally'
      let slowest = 0
    `,
    snippets: [
      {
        has: 'observers: [timing]',
        use: `
          app.tool('order', {}, async (_args, io) => {
            await io.step('book', () => 'b1')
            return (await io.confirm('sure', 'Sure?')) ? 'Ordered.' : 'Not ordered.'
          })
          await talk(app, 'order', {}, [{}, { sure: accepted({ confirm: true }) }])
          console.log(slowest > 0)
        `,
        prints: ['order > book: completed', 'Sure?', 'Ordered.', 'true'],
      },
    ],
  },
  {
    file: 'docs/middleware.md',
    given: `${APP}
      import { type Middleware, ProtocolError, send, Unavailable } from 'mcp-rally'
      import { RateLimiterAbstract, RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
      let slowest = 0
      app.tool('greet', {}, () => 'Hello.')
      const greet = async (principal: string) => {
        const _meta = {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientCapabilities': {},
        }
        const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'greet', _meta } }
        const response = await send(app, message, { caller: { principal } })
        return JSON.stringify(response && 'error' in response ? response.error.message : 'greeted')
      }
    `,
    snippets: [
      {
        has: 'performance.now()',
        use: "await greet('ada'); console.log(slowest > 0)",
        prints: ['tools/call greet: complete for ada', 'true'],
      },
      { has: 'rateLimit(' },
      {
        has: 'RateLimiterPostgres',
        continues: true,
        but: [['RateLimiterPostgres({ storeClient: pool, points: 100,', 'RateLimiterMemory({ points: 1,']],
        use: "for (const who of ['ada', 'ada', 'bob']) console.log(await greet(who))",
        prints: ['"greeted"', '"Too many requests."', '"greeted"'],
      },
      {
        has: 'audit(',
        use: "app.use(audit((line) => console.log(Object.keys(line).join(' ')))); await greet('ada')",
        prints: ['at who by method target flow round outcome'],
      },
      {
        has: 'maintenance(',
        use: "app.use(maintenance(() => true)); console.log(await greet('ada'))",
        prints: ['"Down for maintenance."'],
      },
    ],
  },
  {
    file: 'docs/client.md',
    given: `${APP}
      import { ClientError, type PendingTool } from 'mcp-rally/client'
      ${HELLO}
      app.tool('twice', {}, async (_args, io) => {
        await io.confirm('first', 'First?')
        await io.confirm('second', 'Second?')
        return 'Both.'
      })
    `,
    snippets: [
      { has: 'onVisit:' },
      { has: 'maxRounds: 1', use: 'await impatient.close()\nawait patient.close()' },
      {
        has: 'asking.rounds(',
        use: 'console.log(done.content)\nawait asking.close()\nawait later.close()',
        prints: ["[ { type: 'text', text: 'Hello, Grace' } ]"],
      },
    ],
  },
  {
    file: 'docs/typed-calls.md',
    given: `
      import { rally, type App } from 'mcp-rally'
      import { connect } from 'mcp-rally/client'
      import { z } from 'zod'
    `,
    snippets: [
      { has: 'export const app' },
      { has: 'client.tools.deploy(', continues: true, but: [["'http://127.0.0.1:3000/mcp'", 'app']] },
      { has: 'withMaths' },
    ],
  },
  {
    file: 'docs/client-tasks.md',
    given: `
      import { MemoryStore, rally } from 'mcp-rally'
      import { connect, type SavedTask } from 'mcp-rally/client'
      import { z } from 'zod'
      const store = new MemoryStore()
      const app = rally({ name: 'docs', version: '1.0.0', store })
      app.tool('report', { input: z.object({ month: z.string() }) }, async ({ month }, io) => {
        await io.confirm('sure', 'A report takes hours. Go ahead?')
        await io.detach()
        const { count } = await io.ask('pages', 'How many pages?', z.object({ count: z.number() }))
        return count + ' pages on ' + month
      })
    `,
    snippets: [
      {
        has: 'starting.startTool(',
        but: [["console.error(state.message ?? 'at work')", 'void state.message']],
        use: `
          await starting.close()
          await returning.close()
          app.drain()
          await app.idle()
        `,
      },
    ],
  },
]
