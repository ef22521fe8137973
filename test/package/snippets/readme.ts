// The README.
import type { Page } from './page.ts'
import { APP } from './page.ts'

export const readmePage: Page = {
  file: 'README.md',
  given: APP,
  snippets: [
    {
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
      but: [
        ['const { url } = await serve(app, { port: 3000 })', 'const { url, close } = await serve(app, { port: 0 })'],
      ],
      use: `
        await talk(app, 'deploy', { env: 'staging' }, [{}, { confirm: accepted({ confirm: true }) }])
        console.log((await fetch(url)).status)
        await close()
      `,
      prints: [
        'planning for staging',
        'Deploy c0ffee to staging?',
        'shipping c0ffee string',
        'Deployed c0ffee to staging',
        '405',
      ],
    },
    {
      has: "app.tool('trip'",
      use: `
        const answers = {
          where: accepted({ city: 'Ghent' }),
          who: accepted({ choice: 'a family' }),
          train: accepted({ confirm: true }),
        }
        await talk(app, 'trip', {}, [{}, answers])
      `,
      prints: ['Where would you like to go? | Who is travelling? | By train?', 'a family to Ghent, by train'],
    },
    {
      has: "app.tool('provision_vm'",
      given: `
        import { rally } from 'mcp-rally'
        import { connect } from 'mcp-rally/client'
        import { z } from 'zod'
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
        console.log((await client.callTool('provision_vm', { name: 'web' })).content)
        await client.close()
        app.drain()
        await app.idle()
      `,
      prints: [
        'web costs 4 EUR a day. Go ahead?',
        'creating web string',
        'Where should web run?',
        'starting web in us-east',
        "[ { type: 'text', text: 'web runs in us-east' } ]",
      ],
    },
    {
      has: "connect('http://127.0.0.1:3000/mcp'",
      given: `
        import { rally } from 'mcp-rally'
        import { serve } from 'mcp-rally/node'
        import { z } from 'zod'
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
      use: 'console.log(content)\nawait serving.close()',
      prints: ['Deploy to prod? true', "[ { type: 'text', text: 'Deployed.' } ]"],
    },
    {
      has: 'authenticate: async',
      given: `
        import { rally } from 'mcp-rally'
        import { serve } from 'mcp-rally/node'
        process.env['RALLY_KEY'] = 'a secret that comes from the environment'
        const whoIs = async (credentials: string | undefined): Promise<string> => credentials ?? 'nobody'
      `,
      but: [
        ['await serve(app, {', 'const serving = await serve(app, {'],
        ["host: '0.0.0.0',", "host: '127.0.0.1', port: 0,"],
      ],
      use: `
        for (const host of ['mcp.example.com', 'elsewhere.example.com']) {
          const headers = { Host: host, 'Content-Type': 'application/json' }
          const posted = httpRequest(serving.url, { method: 'POST', headers, agent: false })
          posted.end('{}')
          const [response] = (await onceEmitted(posted, 'response')) as [IncomingMessage]
          console.log(response.statusCode)
          response.resume()
          await onceEmitted(response, 'end')
        }
        await serving.close()
      `,
      prints: ['400', '403'],
    },
  ],
}
