// The pages for authors of tools.
import type { Page } from './page.ts'
import { APP } from './page.ts'

/** A client that agrees to everything, and fills in what is asked with these. */
const agreeing = (content: string): string =>
  `connect(app, { onElicit: () => ({ action: 'accept', content: ${content} }) })`

/** Calls the tool and logs the text that it returns. */
const call = (tool: string, content: string): string => `
  const client = await ${agreeing(content)}
  const { content: [said] } = await client.callTool('${tool}')
  console.log(said && 'text' in said ? said.text : said)
  await client.close()
`

/** The first handler of the page on tests. */
const DEPLOY = `
  import { rally, type Io } from 'mcp-rally'
  import { connect } from 'mcp-rally/client'
  import { decline, harsh, madeUp } from 'mcp-rally/testing'
  import { z } from 'zod'
  const deploy = async ({ env }: { env: string }, io: Io): Promise<string> =>
    (await io.confirm('sure', 'Deploy?')) ? 'Deployed the plan for ' + env + '.' : 'Not deployed.'
`

export const serverPages: readonly Page[] = [
  {
    file: 'docs/start.md',
    given: '',
    snippets: [
      {
        has: "'greet'",
        but: [
          ['const { url } = await serve(app, { port: 3000 })', 'const { url, close } = await serve(app, { port: 0 })'],
          ['console.log(`Listening on ${url}`)', ''],
        ],
        use: 'console.log(new URL(url).pathname); await close()',
        prints: ['/mcp'],
      },
      {
        has: "callTool('greet'",
        given: '',
        continues: true,
        but: [["connect('http://127.0.0.1:3000/mcp'", 'connect(url']],
        use: 'await close()',
      },
    ],
  },
  {
    file: 'docs/asking.md',
    given: `${APP}\nconst payments = new Set<string>()`,
    snippets: [
      {
        has: "app.tool('trip'",
        use: `await talk(app, 'trip', {}, [
          {},
          { where: accepted({ city: 'Ghent' }) },
          { who: accepted({ choice: 'family' }), train: accepted({ confirm: true }) },
          { note: { action: 'decline' } },
        ])`,
        prints: [
          'Where would you like to go?',
          'Who is travelling? | By train?',
          'Anything else?',
          'family to Ghent, by train, no wishes',
        ],
      },
      {
        has: 'io.visit(',
        use: `
          const client = await connect(app, {
            onVisit: ({ url, host }) => {
              console.log(host)
              payments.add(new URL(url).searchParams.get('flow') ?? '')
              return { action: 'accept' }
            },
          })
          console.log((await client.callTool('pay')).content)
          await client.close()
        `,
        prints: ['shop.example', "[ { type: 'text', text: 'Paid.' } ]"],
      },
      {
        has: 'io.sample(',
        use: `
          const client = await connect(app, {
            onRoots: () => [{ uri: 'file:///home/ada' }],
            onSample: ({ messages }) => {
              console.log(JSON.stringify(messages))
              return { role: 'assistant', model: 'mine', content: { type: 'text', text: 'Much.' } }
            },
          })
          console.log((await client.callTool('summarize')).content)
          await client.close()
          const other = await connect(app)
          console.log((await other.callTool('summarize')).content)
          await other.close()
        `,
        prints: [
          '[{"role":"user","content":{"type":"text","text":"Summarize file:///home/ada"}}]',
          `[ { type: 'text', text: '{"type":"text","text":"Much."}' } ]`,
          "[ { type: 'text', text: 'This client has no model to ask.' } ]",
        ],
      },
      {
        has: 'io.revision',
        use: `
          ${call('delete_branch', '{ confirm: true }')}
          const other = await connect(app)
          console.log((await other.callTool('delete_branch')).content)
          console.log((await other.callTool('delete_branch', { confirmed: false })).content)
          await other.close()
        `,
        prints: [
          'Deleted, over 2026-07-28.',
          `[ { type: 'text', text: 'Ask the user, and call again with "confirmed".' } ]`,
          "[ { type: 'text', text: 'Kept.' } ]",
        ],
      },
    ],
  },
  {
    file: 'docs/forms.md',
    given: `${APP}\nimport { RallyError } from 'mcp-rally'`,
    snippets: [
      {
        has: 'const booking',
        use: `
          const content = {
            name: 'Ada', email: 'ada@example.com', day: '2026-07-28', departure: '2026-07-28T09:00:00+02:00', seats: 2, budget: 99.5,
            cabin: 'economy', meal: 'f', extras: ['bag', 'wifi'],
          }
          const client = await connect(app, {
            onElicit: ({ form: { properties, required = [] } }) => {
              for (const [name, field] of Object.entries(properties)) console.log(name, JSON.stringify(field))
              console.log(required.join(' '))
              return { action: 'accept', content }
            },
          })
          console.log((await client.callTool('book')).content)
          await client.close()
        `,
        prints: [
          'name {"type":"string","description":"As in your passport","minLength":1,"maxLength":80}',
          'email {"type":"string","format":"email"}',
          'website {"type":"string","format":"uri"}',
          'day {"type":"string","format":"date"}',
          'departure {"type":"string","format":"date-time"}',
          'seats {"type":"integer","minimum":1,"maximum":8}',
          'budget {"type":"number","minimum":0}',
          'insured {"type":"boolean","default":false}',
          'cabin {"type":"string","enum":["economy","business"]}',
          'meal {"type":"string","oneOf":[{"const":"v","title":"Vegetarian"},{"const":"f","title":"Fish"}]}',
          'extras {"type":"array","maxItems":2,"items":{"type":"string","enum":["bag","seat","wifi"]}}',
          'name email day departure seats budget cabin meal extras',
          "[ { type: 'text', text: '2 for Ada with bag and wifi' } ]",
        ],
      },
      {
        has: "app.tool('reserve'",
        use: `
          const codes = ['xy', 'GNB']
          const client = await connect(app, {
            onElicit: ({ message }) => {
              console.log(message.includes('code: three capital letters'))
              return { action: 'accept', content: { code: codes.shift() } }
            },
          })
          console.log((await client.callTool('reserve')).content)
          await client.close()
        `,
        prints: ['false', 'true', "[ { type: 'text', text: 'Reserved gnb.' } ]"],
      },
      { has: "app.tool('meet'" },
    ],
  },
  {
    file: 'docs/steps.md',
    given: `${APP}
      import { MemoryStore, type Io, type Recordable } from 'mcp-rally'
      const makePlan = async (env: string): Promise<{ sha: string }> => {
        console.log('planning for', env)
        return { sha: 'c0ffee' }
      }
      const ship = async (plan: { sha: string }, options: { idempotencyKey: string; signal: AbortSignal }): Promise<void> => {
        console.log('shipping', plan.sha, options.idempotencyKey.length > 20, options.signal.aborted)
      }
      const charge = async (key: string): Promise<number> => {
        console.log('charging', key.length > 20)
        return 7
      }
      let attempts = 0
      const sendInvoice = async (order: string, key: string, signal: AbortSignal): Promise<number> => {
        attempts += 1
        console.log('sending', order, attempts, signal.aborted)
        if (attempts < 3) throw new Error('down')
        return key.length > 20 ? 12 : 0
      }
      const files = ['a', 'b']
      const countLines = async (file: string): Promise<number> => file.length * 10
      const openFeed = () => {
        const feed = { next: async (signal: AbortSignal) => 'news, ' + signal.aborted, close: () => console.log('closed') }
        return feed
      }
    `,
    snippets: [
      {
        has: "app.tool('deploy'",
        use: "await talk(app, 'deploy', { env: 'prod' }, [{}, { sure: accepted({ confirm: true }) }])",
        prints: ['planning for prod', 'Deploy c0ffee?', 'shipping c0ffee true false', 'Deployed c0ffee.'],
      },
      {
        has: 'retries: 4',
        use: `
          console.error = () => {}
          await talk(app, 'invoice', { order: 'A1' }, [{}])
        `,
        prints: ['sending A1 1 false', 'sending A1 2 false', 'sending A1 3 false', 'Invoice 12.'],
      },
      { has: '{ once }', use: "await talk(app, 'charge', {}, [{}])", prints: ['charging true', 'Receipt 7.'] },
      { has: 'io.scope(', use: "await talk(app, 'import', {}, [{}])", prints: ['20 lines.'] },
      {
        has: 'Recordable<T>',
        use: `await talk(app, 'count', {}, [
          {},
          { sure: accepted({ confirm: true }) },
          { from: accepted({ from: 4 }) },
        ])`,
        prints: ['Count?', 'From which number?', 'Counted to 5.'],
      },
      {
        has: "app.tool('ticket'",
        use: `
          const log = console.log
          const lines: string[] = []
          console.log = (line: string) => lines.push(line)
          await talk(app, 'ticket', {}, [{}, { sure: accepted({ confirm: true }) }])
          console.log = log
          const ids = lines.map((line) => /[0-9a-f-]{36}/.exec(line)?.[0])
          console.log(ids.length, ids[0] === ids[1], typeof ids[0])
        `,
        prints: ['2 true string'],
      },
      {
        has: 'io.onSuspend(',
        use: "await talk(app, 'watch', {}, [{}, { more: accepted({ confirm: false }) }])",
        prints: ['closed', 'news, false. More?', 'closed', 'Enough.'],
      },
    ],
  },
  {
    file: 'docs/replay.md',
    given: APP,
    snippets: [
      {
        has: "app.tool('count'",
        use: "await talk(app, 'count', {}, [{}, { sure: accepted({ confirm: true }) }])",
        prints: ['top', 'work', 'Add to 1?', 'top', '2'],
      },
      {
        has: "version: '2'",
        use: "await talk(app, 'order', {}, [{}, { buy: accepted({ confirm: true }) }])",
        prints: ['Buy for 119?', 'Bought.'],
      },
    ],
  },
  {
    file: 'docs/needs.md',
    given: `${APP}
      import { outcome, resolver } from 'mcp-rally'
      const inventory = { lookup: async (title: string): Promise<{ copies: number }> => ({ copies: title.length % 2 }) }
    `,
    snippets: [
      {
        has: "app.tool(\n  'order'",
        use: `
          await talk(app, 'order', { title: 'Middlemarch' }, [{}])
          await talk(app, 'order', { title: 'Dune' }, [{}, { 'needs:backorder>ok': accepted({ confirm: false }) }])
        `,
        prints: ['Ordered Middlemarch, 1 in stock.', 'Order it in?', 'Nothing was ordered.'],
      },
      {
        has: 'outcome(consent)',
        use: `
          await talk(app, 'subscribe', {}, [{}, { 'needs:consent>agree': { action: 'decline' } }])
          await talk(app, 'subscribe', {}, [{}, { 'needs:consent>agree': accepted({ email: 'ada@example.com' }) }])
        `,
        prints: ['May we write to you?', 'Not subscribed.', 'May we write to you?', 'Writing to ada@example.com.'],
      },
    ],
  },
  {
    file: 'docs/page.md',
    given: `${APP.replace('const app', 'export const other')}
      import { MemoryStore } from 'mcp-rally'
      const sessions = { userOf: (cookie: string | undefined) => cookie?.split('user=')[1] }
    `,
    snippets: [
      {
        has: 'identify: (request)',
        use: `
          const _meta = {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientCapabilities': {},
          }
          const caller = { principal: 'ada', scopes: [], claims: {} }
          const call = async (name: string, args: object) => {
            const params = { name, arguments: args, _meta }
            const reply = await app.dispatch({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }, { caller })
            return JSON.parse(reply?.text ?? '{}').result.content[0].text
          }
          const asked = await call('deploy', { env: 'prod' })
          const [link = ''] = /https:\\S+/.exec(asked) ?? []
          console.log(link.slice(0, 33))
          const page = { method: 'GET', url: link, header: (name: string) => (name === 'cookie' ? 'user=ada' : undefined) }
          const opened = await app.page?.open(page, 'https://mcp.example.com')
          console.log(opened !== undefined && 'status' in opened && opened.status)
        `,
        prints: ['https://mcp.example.com/ask?call=', '200'],
      },
      { has: 'trustModelWithLink', use: `console.log(local.page?.url)`, prints: ['undefined'] },
    ],
  },
  {
    file: 'docs/apps.md',
    given: `${APP.replace('const app', 'export const other')}\nimport { MemoryStore } from 'mcp-rally'`,
    snippets: [
      {
        has: 'apps: true',
        use: `
          const capabilities = { extensions: { 'io.modelcontextprotocol/ui': {} } }
          const _meta = {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientCapabilities': capabilities,
          }
          const send = async (method: string, params: object) => {
            const reply = await app.dispatch({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } })
            return JSON.parse(reply?.text ?? '{}').result
          }
          const { content, _meta: meta } = await send('tools/call', { name: 'deploy', arguments: { env: 'prod' } })
          console.log(content[0].text.slice(0, 21))
          const { contents } = await send('resources/read', { uri: 'ui://rally/ask' })
          const [, key] = /name="key" content="([^"]*)"/.exec(contents[0].text) ?? []
          const { id, tool, arguments: args, state } = meta['com.mcp-rally/ask']
          const answers = { sure: { action: 'accept', content: { confirm: true } } }
          await send('tools/call', { name: 'rally_answer', arguments: { key, id, tool, arguments: args, state, answers } })
          const done = await send('tools/call', { name: 'rally_result', arguments: { id } })
          console.log(done.content[0].text)
        `,
        prints: ['"deploy" is not done:', 'Deployed to prod.'],
      },
    ],
  },
  {
    file: 'docs/by-hand.md',
    given: `${APP}\nimport { elicit, inputRequired } from 'mcp-rally'`,
    snippets: [
      {
        has: "app.tool('wizard'",
        use: "await talk(app, 'wizard', {}, [{}, { name: accepted({ name: 'Ada' }) }])",
        prints: ['Your name?', 'Hello, Ada.'],
      },
      {
        has: "app.tool('shopping'",
        use: `await talk(app, 'shopping', {}, [
          {},
          { next: accepted({ item: 'bread' }) },
          { next: accepted({ item: 'milk' }) },
          { next: { action: 'decline' } },
        ])`,
        prints: [
          'What else? Decline to finish.',
          'What else? Decline to finish.',
          'What else? Decline to finish.',
          'Bought bread and milk.',
        ],
      },
    ],
  },
  {
    file: 'docs/prompts-and-resources.md',
    given: `${APP}
      const files = ['a.ts', 'b.ts']
      const readPayroll = async (year: string, department: string): Promise<string> => department + ' in ' + year
    `,
    snippets: [
      {
        has: "app.prompt('review'",
        use: `
          await goRound(app, 'prompts/get', { name: 'review', arguments: { file: 'a.ts' } }, [
            {},
            { focus: accepted({ choice: 'speed' }) },
          ])
          await goRound(app, 'resources/read', { uri: 'config://app' }, [{}])
          await goRound(app, 'resources/read', { uri: 'payroll://2026/sales/north' }, [{}, { sure: accepted({ confirm: true }) }])
        `,
        prints: [
          'What to look at?',
          'Review a.ts for speed.',
          '{"debug":false}',
          'Read the payroll of sales/north?',
          'sales/north in 2026',
        ],
      },
      {
        has: 'added_later',
        use: "await talk(app, 'added_later', {}, [{}])",
        prints: ['Hello.'],
      },
      {
        has: 'client.subscribe(',
        given: `${APP}\napp.resource('config://app', { name: 'config' }, () => '{}')\nconst client = await connect(app)`,
        use: "await client.close()\nconsole.log('heard')",
        prints: ['heard'],
      },
    ],
  },
  {
    file: 'docs/extensions.md',
    given: `${APP}
      import { mkdirSync, writeFileSync } from 'node:fs'
      import { skillFolder } from 'mcp-rally/node'
      const findRate = async (_currency: string, _signal: AbortSignal): Promise<number> => 1.25
      mkdirSync('skills/billing', { recursive: true })
      writeFileSync('skills/billing/SKILL.md', '---\\nname: billing\\ndescription: How bills are made\\n---\\nMake them.\\n')
    `,
    snippets: [
      { has: 'app.method(' },
      { has: 'client.listSkills()', continues: true, use: 'await client.close()' },
      {
        has: 'skillFolder(',
        use: `
          const client = await connect(app)
          for (const { uri } of await client.listSkills()) console.log(uri)
          await client.close()
        `,
        prints: ['skill://acme/billing/SKILL.md'],
      },
    ],
  },
  {
    file: 'docs/tasks.md',
    given: '',
    snippets: [
      {
        has: 'await io.detach()',
        but: [
          ["sqlite('tasks.db')", "sqlite(':memory:')"],
          ['10_000', '10'],
          ['const { url } = await serve(app, { port: 3000 })', 'const { url, close } = await serve(app, { port: 0 })'],
          ['Listening on ${url}', 'Listening on ${new URL(url).pathname}'],
        ],
        use: `
          const { connect } = await import('mcp-rally/client')
          const client = await connect(url, {
            onElicit: ({ key }) => ({ action: 'accept', content: key === 'cost' ? { confirm: true } : { choice: 'us-east' } }),
          })
          const started = await client.startTool('provision_vm', { name: 'web' })
          console.log(started.kind)
          if (started.kind === 'task') console.log((await started.task.result()).content)
          await client.close()
          await close()
        `,
        prints: [
          'Listening on /mcp',
          'task',
          'Starting web in us-east',
          "[ { type: 'text', text: 'web runs debian in us-east.' } ]",
        ],
      },
      {
        has: 'concurrency: { limit: 2',
        given: `
          import { rally } from 'mcp-rally'
          import { connect } from 'mcp-rally/client'
          import { sqlite } from 'mcp-rally/sqlite'
          import { z } from 'zod'
          const app = rally({ name: 'cloud', version: '1.0.0', store: sqlite(':memory:') })
          let running = 0
          let most = 0
          const build = async (repository: string): Promise<string> => {
            most = Math.max(most, (running += 1))
            await new Promise((resolve) => setTimeout(resolve, 20))
            running -= 1
            return repository
          }
        `,
        use: `
          const client = await connect(app)
          await Promise.all(Array.from({ length: 6 }, () => client.callTool('build', { repository: 'web' })))
          console.log('at most', most)
          await client.close()
          app.drain()
          await app.idle()
        `,
        prints: ['at most 2'],
      },
    ],
  },
  {
    file: 'docs/operations.md',
    given: `
      import { MemoryStore, rally } from 'mcp-rally'
      import { connect } from 'mcp-rally/client'
      const logger = { warn() {}, error() {} }
      const app = rally({ name: 'docs', version: '1.0.0', store: new MemoryStore(), logger, showErrors: true })
      let isDown = true
      app.tool('order', { task: 'always' }, async (_args, io) => {
        await io.step('reserve', () => 1)
        await io.step('charge', () => {
          if (isDown) throw new Error('the bank is down')
        })
        return 'Ordered.'
      })
      const client = await connect(app)
      await client.callTool('order')
      isDown = false
    `,
    snippets: [
      {
        has: 'app.tasks.retry(',
        use: `
          const newest = async () => (await app.tasks.list({ limit: 1 })).tasks[0]
          while ((await newest())?.outcome === undefined) await new Promise((resolve) => setTimeout(resolve, 5))
          console.log((await newest())?.outcome)
          await client.close()
          app.drain()
          await app.idle()
        `,
        prints: [
          'claim  ended ',
          'step reserve completed ',
          'step charge failed Error: the bank is down',
          'end  error ',
          'true',
          'ok',
        ],
      },
    ],
  },
  {
    file: 'docs/waiting.md',
    given: `
      import { MemoryStore, rally } from 'mcp-rally'
      import { connect } from 'mcp-rally/client'
      import { z } from 'zod'
      const app = rally({ name: 'docs', version: '1.0.0', store: new MemoryStore() })
      const TRIAL_MS = 50
      const GRACE_MS = 60
      const startTrial = (user: string): void => console.log('starting for', user)
      const endTrial = (user: string, keep: boolean): void => console.log('ending for', user, keep)
    `,
    snippets: [
      {
        has: 'io.sleep(',
        use: `
          const client = await connect(app, { onElicit: () => new Promise(() => {}) })
          const started = await client.startTool('trial', { user: 'ann' })
          if (started.kind === 'task') {
            for (;;) {
              const state = await started.task.status()
              if (state.status === 'completed') break
              await new Promise((resolve) => setTimeout(resolve, 20))
            }
            console.log((await started.task.result()).content)
          }
          await client.close()
          app.drain()
          await app.idle()
        `,
        prints: ['starting for ann', 'ending for ann false', "[ { type: 'text', text: 'Ended.' } ]"],
      },
      {
        has: 'io.event(',
        given: `
          import { rally } from 'mcp-rally'
          import { connect } from 'mcp-rally/client'
          import { sqlite } from 'mcp-rally/sqlite'
          import { z } from 'zod'
          const keys = ['a secret of this page, which is long enough']
          const store = sqlite(':memory:')
          const app = rally({ name: 'docs', version: '1.0.0', keys, store })
          const HOUR_MS = 3_600_000
          const post = async (token: string, value: unknown): Promise<void> => {
            const headers = { 'Content-Type': 'application/json' }
            const request = new Request('http://127.0.0.1/events/' + token, { method: 'POST', headers, body: JSON.stringify(value) })
            console.log(await (await app.fetch(request)).json())
          }
          const mailManager = (text: string, token: string): void => {
            console.log(text)
            void app.signal(token, { approved: true }).then(console.log)
          }
          const createInvoice = (item: string, token: string): void => void post(token, { amount: item.length })
        `,
        use: `
          const client = await connect(app)
          const { content } = await client.callTool('order', { item: 'chair' })
          console.log(content)
          await client.close()
          app.drain()
          await app.idle()
          await store.close()
        `,
        prints: ['Order chair?', 'accepted', "{ status: 'accepted' }", "[ { type: 'text', text: 'Paid: 5 EUR.' } ]"],
      },
      {
        has: 'app.signal(token',
        given: `
          import { MemoryStore, rally } from 'mcp-rally'
          const app = rally({ name: 'docs', version: '1.0.0', store: new MemoryStore() })
          const token = 'sg1.wrong'
        `,
        but: [
          [
            'const outcome = await app.signal(token, { approved: true })',
            'const outcome = await app.signal(token, { approved: true }).catch((error: Error) => error.name)',
          ],
        ],
        use: 'console.log(outcome)',
        prints: ['RallyError'],
      },
    ],
  },
  {
    file: 'docs/options.md',
    given: "import { rally } from 'mcp-rally'",
    snippets: [{ has: 'instructions:', use: 'console.log(app.info.name)', prints: ['deployer'] }],
  },
  {
    file: 'docs/errors.md',
    given: `${APP}
      import { Declined, StepFailed, ToolError } from 'mcp-rally'
      const tracker = { capture: (...reported: unknown[]): void => console.log(reported.length) }
      let works = false
      const ship = (): void => {
        if (!works) throw new Error('No network.')
      }
    `,
    snippets: [
      {
        has: 'instanceof StepFailed',
        use: `
          await talk(app, 'deploy', {}, [{}])
          works = true
          await talk(app, 'deploy', {}, [{}, { note: { action: 'decline' } }])
        `,
        prints: ['The step "ship" failed: No network.', 'A note for the log?', 'Deployed, without a note.'],
      },
      {
        has: 'onError:',
        use: "await talk(shop, 'order', {}, [{}])",
        prints: ['Sold out. Ask the user for another size.'],
      },
    ],
  },
  {
    file: 'docs/testing.md',
    given: `
      import { MemoryStore, rally, type Io } from 'mcp-rally'
      import { connect } from 'mcp-rally/client'
      import { accept, decline, harsh, madeUp, ReplayMismatch } from 'mcp-rally/testing'
      import { z } from 'zod'
    `,
    snippets: [
      { has: 'const deploy =' },
      { has: "harsh(expenses, 'submit_expense'" },
      { has: 'const careless =' },
      { has: 'observe:' },
      { has: 'madeUp(question)', given: DEPLOY },
      { has: "app.tool('deploy'", given: DEPLOY },
    ],
  },
]
