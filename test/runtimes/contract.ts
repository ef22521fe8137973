// What every runtime must do: one contract of a host and one of a client. A runtime brings the way to start them.
import type { CallToolResult, FormAnswer } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

/** `app.mjs`: the app that a host under test serves. `notify` is a tool that changes a resource. */
export const APP = `
  import { rally } from 'mcp-rally'
  import { z } from 'zod'
  export const app = rally({
    name: 'runtime',
    version: '1.0.0',
    keys: ['wEnPmYb6WeTzMwlmDJzMwqPmBH9zHhK7TMUJJ4ZVkQk='],
    http: { allowedHosts: '*' },
  })
  const properties = { env: { type: 'string', minLength: 1 } }
  app.tool('plain', { input: { type: 'object', properties, required: ['env'] } }, ({ env }) => 'plain ' + env)
  app.tool('zod', { input: z.object({ env: z.string() }) }, ({ env }) => 'zod ' + env)
  app.tool('deploy', {}, async (_args, io) => {
    const plan = await io.step('plan', () => ({ sha: 'c0ffee' }))
    return (await io.confirm('sure', 'Deploy ' + plan.sha + '?')) ? 'Deployed ' + plan.sha : 'Not deployed'
  })
  app.resource('config://app', { name: 'config' }, () => 'text')
  app.tool('change', {}, () => {
    app.notify.resourceUpdated('config://app')
    return 'changed'
  })
`

/** `client.mjs`: calls a server with the client of the runtime, and gives what it saw. */
export const CLIENT = `
  import { connect } from 'mcp-rally/client'
  export async function callAll(url) {
    const seen = {}
    for (const revision of ['2026-07-28', '2025-11-25']) {
      const onElicit = async ({ message }) => {
        seen[revision + ' asks'] = message
        return { action: 'accept', content: { confirm: true } }
      }
      const client = await connect(url, { revision, onElicit })
      seen[revision] = (await client.callTool('deploy', {})).content[0].text
      await client.close()
    }
    return seen
  }
`

export interface Started {
  readonly url: string
  stop(): Promise<void>
}

export function hostContract(runtime: string, start: () => Promise<Started>): void {
  describe(`a host in ${runtime}`, () => {
    let host: Started
    beforeAll(async () => {
      host = await start()
    })
    afterAll(() => host.stop())

    test('answers a call, and checks its arguments by JSON Schema and by zod', async () => {
      const client = await connect(host.url)
      expect(textOf(await client.callTool('plain', { env: 'prod' }))).toBe('plain prod')
      expect(textOf(await client.callTool('plain', { env: '' }))).toMatch(/^Invalid arguments for plain: \/env /)
      expect(textOf(await client.callTool('zod', { env: 'prod' }))).toBe('zod prod')
      expect(textOf(await client.callTool('zod', { env: 1 }))).toMatch(/^Invalid arguments for zod: env/)
      await client.close()
    })

    test.each(['2026-07-28', '2025-11-25'])('asks in the middle of a call in revision %s', async (revision) => {
      const client = await connect(host.url, { revision, onElicit: accept })
      expect(textOf(await client.callTool('deploy', {}))).toBe('Deployed c0ffee')
      await client.close()
    })

    test('tells a client of changes that it subscribed to', async () => {
      const client = await connect(host.url)
      const changes = client.subscribe({ uris: ['config://app'] })
      expect(await changes.next()).toMatchObject({ value: { type: 'acknowledged' } })
      await client.callTool('change', {})
      expect(await changes.next()).toEqual({ done: false, value: { type: 'updated', uri: 'config://app' } })
      await changes.return()
      await client.close()
    })
  })
}

export function clientContract(runtime: string, run: (url: string) => Promise<unknown>, server: () => string): void {
  test(`a client in ${runtime} calls a server that asks, in both kinds of revision`, async () => {
    expect(await run(server())).toEqual({
      '2026-07-28': 'Deployed c0ffee',
      '2026-07-28 asks': 'Deploy c0ffee?',
      '2025-11-25': 'Deployed c0ffee',
      '2025-11-25 asks': 'Deploy c0ffee?',
    })
  })
}

function accept(): FormAnswer {
  return { action: 'accept', content: { confirm: true } }
}

function textOf({ content: [block] }: CallToolResult): unknown {
  return block?.type === 'text' ? block.text : block
}
