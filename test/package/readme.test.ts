// Every TypeScript snippet of the README and the guide is compiled and run as its reader would, against the packed package.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Consumer, ROOT } from './consumer.ts'

const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
const guide = readFileSync(join(ROOT, 'docs/guide.md'), 'utf8')

interface Snippet {
  title: string
  /** How it is told from the others. */
  has: string
  /** What its reader has already. */
  given: string
  /** What is put in place of its text so that it can run in a test, and so that what it makes can be used. */
  but: readonly (readonly [text: string, instead: string])[]
  /** What it makes that is used. */
  makes?: string
  /** Uses what it made, and prints. */
  use: string
  prints: string
}

const IMPORTS = `
import { rally } from 'mcp-rally'
import { serve } from 'mcp-rally/node'
import { z } from 'zod'
`

/** Goes round by round, with each round's answers, and prints what was asked and what was said. */
const TALK = `
import { send, type App } from 'mcp-rally'

const _meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
}

interface Result {
  inputRequests?: Record<string, { params: { message: string } }>
  requestState?: string
  content?: { text: string }[]
  messages?: { content: { text: string } }[]
  contents?: { text: string }[]
}

export function talk(app: App, name: string, args: object, rounds: object[]): Promise<void> {
  return goRound(app, 'tools/call', { name, arguments: args }, rounds)
}

export async function goRound(app: App, method: string, request: object, rounds: object[]): Promise<void> {
  let requestState: string | undefined
  for (const inputResponses of rounds) {
    const params = { ...request, inputResponses, requestState, _meta }
    const response = await send(app, { jsonrpc: '2.0', id: 1, method, params })
    if (!response || !('result' in response)) throw new Error(JSON.stringify(response))
    const result = response.result as unknown as Result
    requestState = result.requestState
    const asked = Object.values(result.inputRequests ?? {}).map(({ params }) => params.message)
    const said = [...(result.content ?? []), ...(result.messages ?? []).map(({ content }) => content), ...(result.contents ?? [])]
    console.log([...asked, ...said.map(({ text }) => text)].join(' | '))
  }
}

export const accept = (content: object): object => ({ action: 'accept', content })
`

const snippets: readonly Snippet[] = [
  {
    title: 'the first tool',
    has: "app.tool(\n  'deploy'",
    given: `
      const makePlan = async (env: string): Promise<{ sha: string }> => {
        console.log('planning for', env)
        return { sha: 'c0ffee' }
      }
      const ship = async (plan: { sha: string }, key: string): Promise<void> => {
        console.log('shipping', plan.sha, typeof key)
      }
    `,
    but: [['const { url } = await serve(app, { port: 3000 })', 'export const serving = await serve(app, { port: 0 })']],
    use: `
      await talk(app, 'deploy', { env: 'staging' }, [{}, { confirm: accept({ confirm: true }) }])
      console.log((await fetch(serving.url)).status)
      await serving.close()
    `,
    prints:
      'planning for staging\nDeploy c0ffee to staging?\nshipping c0ffee string\nDeployed c0ffee to staging\n405\n',
  },
  {
    title: 'questions asked together',
    has: "app.tool('trip'",
    given: `${IMPORTS}\nconst app = rally({ name: 'traveller', version: '1.0.0' })`,
    but: [],
    use: `
      const answers = {
        where: accept({ city: 'Ghent' }),
        who: accept({ choice: 'a family' }),
        train: accept({ confirm: true }),
      }
      await talk(app, 'trip', {}, [{}, answers])
    `,
    prints: 'Where would you like to go? | Who is travelling? | By train?\na family to Ghent, by train\n',
  },
  {
    title: 'a task',
    has: "app.tool('provision_vm'",
    given: `${IMPORTS}
      import { connect } from 'mcp-rally/client'
      const createVm = async (name: string, key: string): Promise<{ name: string }> => {
        console.log('creating', name, typeof key)
        return { name }
      }
      const startVm = async (vm: { name: string }, region: string, progress: (done: number, of: number) => void): Promise<void> => {
        progress(1, 1)
        console.log('starting', vm.name, 'in', region)
      }
    `,
    but: [["sqlite('tasks.db')", "sqlite(':memory:')"]],
    use: `
      const client = await connect(app, {
        onElicit: ({ message }) => {
          console.log(message)
          return { action: 'accept', content: message.endsWith('ahead?') ? { confirm: true } : { choice: 'us-east' } }
        },
      })
      const { content } = await client.callTool('provision_vm', { name: 'web' })
      console.log(JSON.stringify(content))
      await client.close()
    `,
    makes: 'app, connect',
    prints:
      'web costs 4 EUR a day. Go ahead?\ncreating web string\nWhere should web run?\nstarting web in us-east\n[{"type":"text","text":"web runs in us-east"}]\n',
  },
  {
    title: 'the client',
    has: "connect('http://127.0.0.1:3000/mcp'",
    given: `${IMPORTS}
      const app = rally({ name: 'deployer', version: '1.0.0' })
      const schema = z.object({ confirm: z.boolean() })
      app.tool('deploy', { input: z.object({ env: z.string() }), asks: { sure: schema } }, async ({ env }, io) => {
        const { confirm } = await io.ask('sure', 'Deploy to ' + env + '?')
        return confirm ? 'Deployed.' : 'Left as it was.'
      })
      const serving = await serve(app, { port: 0 })
      const askTheUser = async (message: string, form: object): Promise<{ confirm: boolean }> => {
        console.log(message, Object.keys(form).length > 0)
        return { confirm: true }
      }
    `,
    but: [["connect('http://127.0.0.1:3000/mcp'", 'connect(serving.url']],
    use: `
      console.log(JSON.stringify(content))
      await serving.close()
    `,
    prints: 'Deploy to prod? true\n[{"type":"text","text":"Deployed."}]\n',
    makes: 'app, serving, content',
  },
  {
    title: 'an app in production',
    has: 'authenticate: async',
    given: `
      ${IMPORTS}
      process.env.RALLY_KEY = 'a secret that comes from the environment'
      const whoIs = async (credentials: string | undefined): Promise<string> => credentials ?? 'nobody'
    `,
    but: [
      ['await serve(app, {', 'export const serving = await serve(app, {'],
      ["host: '0.0.0.0',", "host: '127.0.0.1', port: 0,"],
    ],
    use: `
      for (const host of ['mcp.example.com', 'elsewhere.example.com']) {
        const headers = { Host: host, 'Content-Type': 'application/json' }
        const posted = request(serving.url, { method: 'POST', headers, agent: false })
        posted.end('{}')
        const [response] = (await once(posted, 'response')) as [IncomingMessage]
        console.log(response.statusCode)
        response.resume()
        await once(response, 'end')
      }
      await serving.close()
    `,
    prints: '400\n403\n',
  },
  {
    title: 'prompts and resources',
    has: "app.prompt('review'",
    given: `${IMPORTS}
      const app = rally({ name: 'guide', version: '1.0.0' })
      const files = ['a.ts', 'b.ts']
      const readPayroll = async (year: string, department: string): Promise<string> => department + ' in ' + year
    `,
    but: [],
    use: `
      await goRound(app, 'prompts/get', { name: 'review', arguments: { file: 'a.ts' } }, [
        {},
        { focus: accept({ choice: 'speed' }) },
      ])
      await goRound(app, 'resources/read', { uri: 'payroll://2026/sales/north' }, [{}, { sure: accept({ confirm: true }) }])
    `,
    prints: 'What to look at?\nReview a.ts for speed.\nRead the payroll of sales/north?\nsales/north in 2026\n',
  },
  {
    title: 'needs',
    has: 'resolver(',
    given: `${IMPORTS}
      import { resolver } from 'mcp-rally'
      const app = rally({ name: 'guide', version: '1.0.0' })
      const inventory = { lookup: async (title: string): Promise<{ copies: number }> => ({ copies: title.length % 2 }) }
    `,
    but: [],
    use: `
      await talk(app, 'order', { title: 'Middlemarch' }, [{}])
      await talk(app, 'order', { title: 'Dune' }, [{}, { 'needs:backorder>ok': accept({ confirm: false }) }])
    `,
    prints: 'Ordered Middlemarch, 1 in stock.\nOrder it in?\nNothing was ordered.\n',
  },
  {
    title: 'rounds by hand',
    has: 'inputRequired(',
    given: `${IMPORTS}
      import { elicit, inputRequired } from 'mcp-rally'
      const app = rally({ name: 'guide', version: '1.0.0' })
    `,
    but: [],
    use: "await talk(app, 'wizard', {}, [{}, { name: accept({ name: 'Ada' }) }])",
    prints: 'Your name?\nHello, Ada.\n',
  },
  {
    title: 'long work',
    has: "app.tool('report'",
    given: `${IMPORTS}
      import { sqlite } from 'mcp-rally/sqlite'
      const app = rally({ name: 'guide', version: '1.0.0', store: sqlite(':memory:') })
      const readRows = async (year: number, progress: (done: number, of: number) => void): Promise<number[]> => {
        progress(1, 1)
        return [year]
      }
      const render = async (rows: number[], format: string, key: string): Promise<string> =>
        [...rows, format, typeof key].join()
    `,
    but: [],
    use: `
      import { send } from 'mcp-rally'
      const _meta = {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': {
          elicitation: {},
          extensions: { 'io.modelcontextprotocol/tasks': {} },
        },
      }
      interface Task { taskId: string; resultType: string; status: string; result?: { content: object[] } }
      const ask = async (method: string, params: object): Promise<Task> => {
        const response = await send(app, { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } })
        if (!response || !('result' in response)) throw new Error(JSON.stringify(response))
        return response.result as unknown as Task
      }
      const until = async (taskId: string, status: string): Promise<Task> => {
        const task = await ask('tasks/get', { taskId })
        await new Promise((resolve) => setTimeout(resolve, 10))
        return task.status === status ? task : until(taskId, status)
      }
      const { taskId, resultType } = await ask('tools/call', { name: 'report', arguments: { year: 2026 } })
      await until(taskId, 'input_required')
      await ask('tasks/update', { taskId, inputResponses: { format: accept({ choice: 'csv' }) } })
      const { result } = await until(taskId, 'completed')
      console.log(resultType, JSON.stringify(result?.content))
    `,
    prints: 'task [{"type":"text","text":"2026,csv,string"}]\n',
  },
  {
    title: 'OAuth tokens',
    has: 'bearer({',
    given: `${IMPORTS}
      import { bearer } from 'mcp-rally/bearer'
      const app = rally({ name: 'guide', version: '1.0.0' })
    `,
    but: [
      ['await serve(app, {', 'export const serving = await serve(app, {'],
      ["host: '0.0.0.0',", "host: '127.0.0.1', port: 0,"],
    ],
    use: `
      const headers = { Host: 'mcp.example.com', 'Content-Type': 'application/json' }
      const posted = request(serving.url, { method: 'POST', headers, agent: false })
      posted.end('{}')
      const [response] = (await once(posted, 'response')) as [IncomingMessage]
      console.log(response.statusCode, response.headers['www-authenticate'])
      response.resume()
      await serving.close()
    `,
    prints:
      '401 Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp", scope="mcp"\n',
  },
  {
    title: 'answerers',
    has: 'onVisit:',
    given: `${IMPORTS}
      import { connect } from 'mcp-rally/client'
      const app = rally({ name: 'guide', version: '1.0.0' })
      app.tool('hello', { asks: { name: z.object({ name: z.string() }) } }, async (_args, io) => {
        const { name } = await io.ask('name', 'Your name?')
        await io.step('count', ({ progress }) => progress(1, 1))
        return 'Hello, ' + name
      })
    `,
    but: [],
    use: 'console.log(JSON.stringify(result.content))\nawait client.close()',
    prints: '1\n[{"type":"text","text":"Hello, Ada"}]\n',
    makes: 'client, result',
  },
  {
    title: 'rounds of its own',
    has: 'asking.rounds(',
    given: `${IMPORTS}
      import { connect, type PendingTool } from 'mcp-rally/client'
      const app = rally({ name: 'guide', version: '1.0.0' })
      app.tool('hello', { asks: { name: z.object({ name: z.string() }) } }, async (_args, io) => {
        const { name } = await io.ask('name', 'Your name?')
        await io.step('count', ({ progress }) => progress(1, 1))
        return 'Hello, ' + name
      })
    `,
    but: [],
    use: 'console.log(JSON.stringify(done.content))\nawait asking.close()\nawait later.close()',
    prints: '[{"type":"text","text":"Hello, Grace"}]\n',
    makes: 'asking, later, done',
  },
  {
    title: 'tasks in the client',
    has: 'starting.startTool(',
    given: `${IMPORTS}
      import { MemoryStore } from 'mcp-rally'
      import { connect, type SavedTask } from 'mcp-rally/client'
      const store = new MemoryStore()
      const app = rally({ name: 'guide', version: '1.0.0', store })
      app.tool('report', { input: z.object({ month: z.string() }) }, async ({ month }, io) => {
        await io.confirm('sure', 'A report takes hours. Go ahead?')
        await io.detach()
        const { count } = await io.ask('pages', 'How many pages?', z.object({ count: z.number() }))
        return count + ' pages on ' + month
      })
    `,
    but: [["console.log(state.message ?? 'at work')", 'void state.message']],
    use: `
      console.log(JSON.stringify(report.content))
      await starting.close()
      await returning.close()
      app.drain()
      await app.idle()
      await store.close()
    `,
    prints: '[{"type":"text","text":"3 pages on May"}]\n',
    makes: 'app, store, starting, returning, report',
  },
  {
    title: 'drafts',
    has: "revision: '2026-06-XX'",
    given: `${IMPORTS}\nimport { connect } from 'mcp-rally/client'`,
    but: [['const { url } = await serve(app, { port: 3000 })', 'const { url, close } = await serve(app, { port: 0 })']],
    use: 'console.log(client.revision)\nawait client.close()\nawait close()',
    prints: '2026-06-XX\n',
    makes: 'client, close',
  },
  {
    title: 'a store',
    has: "sqlite('rally.db')",
    given: `${IMPORTS}
      import { sqlite } from 'mcp-rally/sqlite'
    `,
    but: [],
    use: `
      app.tool('hello', {}, async (_args, io) => ((await io.confirm('sure', 'Sure?')) ? 'Hello.' : 'Well then.'))
      await talk(app, 'hello', {}, [{}, { sure: accept({ confirm: true }) }])
      await store.close()
      await talk(app, 'hello', {}, [{}, { sure: accept({ confirm: true }) }]).catch(() => console.log('closed'))
    `,
    prints: 'Sure?\nHello.\nSure?\nclosed\n',
    makes: 'app, store',
  },
]

const blocks = [...`${readme}\n${guide}`.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = '']) => code)

describe('the TypeScript of the README and the guide', () => {
  let consumer: Consumer

  beforeAll(async () => {
    consumer = await Consumer.install(['zod', '@types/node'])
    await consumer.write({ 'talk.ts': TALK, ...files() })
  })
  afterAll(() => consumer.remove())

  test('is all known here', () => {
    expect(blocks.map((code) => snippets.filter(({ has }) => code.includes(has)).map(({ title }) => title))).toEqual(
      snippets.map(({ title }) => [title]),
    )
  })

  test('compiles, strictly, and does what it says when it runs', async () => {
    expect(await consumer.compile(Object.keys(files()))).toBe('')
    const ran = await Promise.all(snippets.map((_, index) => consumer.run(`use-${index}.js`)))
    expect(ran.map(({ stdout }) => stdout)).toEqual(snippets.map(({ prints }) => prints))
  })
})

/** Each snippet as a module, with what its reader has above and what uses it in another one. */
function files(): Record<string, string> {
  const all: Record<string, string> = {}
  for (const [index, { given, but, use, makes }] of snippets.entries()) {
    let code = blocks[index] ?? ''
    for (const [text, instead] of but) {
      expect(code).toContain(text)
      code = code.replace(text, instead)
    }
    const made = makes ?? (code.includes('export const serving') ? 'app, serving' : 'app')
    const rest = makes ?? 'app'
    all[`snippet-${index}.ts`] = `${given}\n${code}\nexport { ${rest} }\n`
    all[`use-${index}.ts`] = `
      import { once } from 'node:events'
      import { request, type IncomingMessage } from 'node:http'
      import { accept, goRound, talk } from './talk.js'
      import { ${made} } from './snippet-${index}.js'
      ${use}
    `
  }
  return all
}

test('the npm commands of the README are scripts of the package', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: object }
  const commands = [...readme.matchAll(/\bnpm (?:run )?([a-z:]+)/g)].map(([, name]) => name)
  expect(commands).toEqual(expect.arrayContaining(['start', 'test', 'bench']))
  expect(commands.filter((name = '') => !(name in scripts))).toEqual([])
})
