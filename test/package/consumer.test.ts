import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Consumer } from './consumer.ts'

let consumer: Consumer

beforeAll(async () => {
  consumer = await Consumer.install(['libsql', 'zod', '@types/node'])
}, 60_000)
afterAll(() => consumer.remove())

const DEPLOY = `
import { Declined, rally, type Io, type Rally } from 'mcp-rally'
import { serve, type Serving } from 'mcp-rally/node'
import { accept, harsh } from 'mcp-rally/testing'
import { z } from 'zod'

export const app: Rally = rally({ name: 'deployer', version: '1.0.0' })

const asks = { confirm: z.object({ confirm: z.boolean() }) }

async function deploy({ env }: { env: string }, io: Io<typeof asks>): Promise<string> {
  const { confirm } = await io.ask('confirm', \`Deploy to \${env}?\`)
  return confirm ? await io.step('ship', ({ idempotencyKey }) => \`Deployed as \${idempotencyKey}\`) : 'Left as it was.'
}

app.tool('deploy', { input: z.object({ env: z.string() }), asks }, deploy)

export async function start(): Promise<Serving> {
  try {
    return await serve(app, { port: 0 })
  } catch (error) {
    if (error instanceof Declined) console.log(error.key, error.action)
    throw error
  }
}

export const answer = accept({ confirm: true })
export const run = harsh
`

describe('the published types', () => {
  test.each([
    { for: 'a Node project', options: {} },
    { for: 'a project with the types of a browser too', options: { lib: ['ES2023', 'DOM'] } },
    { for: 'a bundled project', options: { module: 'preserve', moduleResolution: 'bundler' } },
  ])('compile without complaint in $for, strictly and with every library checked', async ({ options }) => {
    await consumer.write({ 'deploy.ts': DEPLOY })
    expect(await consumer.compile(['deploy.ts'], { noEmit: true, ...options })).toBe('')
  })

  test('tell a consumer of a mistake', async () => {
    await consumer.write({ 'mistake.ts': DEPLOY.replace("io.ask('confirm',", "io.ask('confrim',") })
    expect(await consumer.compile(['mistake.ts'], { noEmit: true })).toMatch(/mistake\.ts\(\d+,\d+\): error .*confrim/)
  })
})

describe('the published code', () => {
  const USE = `
    app.tool('greet', { input: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } },
      ({ name }) => 'Hello, ' + name)
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const params = { name: 'greet', arguments: { name: 'Ada' }, _meta }
    send(app, { jsonrpc: '2.0', id: 1, method: 'tools/call', params }).then(({ result }) => {
      console.log(result.content[0].text)
    })
  `

  test.each([
    { kind: 'an ES module', file: 'plain.mjs', load: `import { rally, send } from 'mcp-rally'` },
    { kind: 'a CommonJS module', file: 'plain.cjs', load: `const { rally, send } = require('mcp-rally')` },
  ])('works in plain JavaScript, in $kind', async ({ file, load }) => {
    await consumer.write({ [file]: `${load}\nconst app = rally({ name: 'greeter', version: '1.0.0' })\n${USE}` })
    const { stdout } = await consumer.run(file)
    expect(stdout).toBe('Hello, Ada\n')
  })

  test('brings the terminal client, with all that it needs', async () => {
    const { stdout } = await consumer
      .run('node_modules/mcp-rally/dist/cli.js')
      .catch((error: { code: number; stderr: string }) => ({ stdout: `${error.code} ${error.stderr}` }))
    expect(stdout).toMatch(/^2 Usage: npx mcp-rally/)
  })
})
