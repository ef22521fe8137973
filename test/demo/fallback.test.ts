import type { ClientOptions } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { serve } from 'mcp-rally/node'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { app } from '../../examples/fallback.ts'

const yes: ClientOptions = { onElicit: () => ({ action: 'accept', content: { confirm: true } }) }
const no: ClientOptions = { onElicit: () => ({ action: 'accept', content: { confirm: false } }) }

let url: string
beforeAll(async () => {
  const server = await serve(app, { port: 0 })
  ;({ url } = server)
  return server.close
})
beforeEach(() => void vi.spyOn(console, 'error').mockImplementation(() => {}))

async function say(options: ClientOptions, args: object): Promise<unknown> {
  const client = await connect(url, options)
  onTestFinished(() => client.close())
  const { content } = await client.callTool('delete_branch', { branch: 'old', ...args })
  return content
}

describe.each(['2026-07-28', '2025-11-25', '2025-06-18'])('under %s', (revision) => {
  test.each([
    { what: 'asks a client that can be asked', options: yes, args: {}, text: 'Deleted old.' },
    { what: 'takes its no', options: no, args: {}, text: 'Kept old.' },
    { what: 'asks it whatever the model says', options: no, args: { confirmed: true }, text: 'Kept old.' },
  ])('$what', async ({ options, args, text }) => {
    expect(await say({ ...options, revision }, args)).toEqual([{ type: 'text', text }])
  })
})

describe.each(['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26'])(
  'to a client of %s that asks nobody',
  (revision) => {
    test.each([
      {
        what: 'says how to go on',
        args: {},
        text: 'Ask the user whether to delete old, and call again with "confirmed".',
      },
      { what: 'takes the answer as an argument', args: { confirmed: true }, text: 'Deleted old.' },
      { what: 'takes a no as well', args: { confirmed: false }, text: 'Kept old.' },
    ])('$what', async ({ args, text }) => {
      expect(await say({ revision }, args)).toEqual([{ type: 'text', text }])
    })
  },
)
