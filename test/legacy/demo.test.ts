// The demo, whose tools know nothing of revisions, with the clients of the 2025 era.
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { serve } from 'mcp-rally/node'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { demoApp } from '../../examples/tools.ts'
import { DEMO_ARGS } from '../interop/child.ts'
import { KEYS } from './app.mjs'
import type { Answerers, Peer } from './peers.ts'
import { connectV1 } from './peers.ts'

const CONTENT: Readonly<Record<string, Record<string, string | number | boolean>>> = {
  'How was work item 7 resolved?': { resolution: 'Duplicate' },
  'Which work item is 7 a duplicate of?': { duplicateOf: 3 },
  'Where would you like to go?': { city: 'Ghent' },
  'In which month?': { month: 'June' },
  'How would you like to travel?': { transport: 'train', luggage: true },
}

const answerers: Answerers = {
  elicit: ({ message }) => ({ action: 'accept', content: CONTENT[message] ?? { confirm: true } }),
  sample: () => ({ role: 'assistant', content: { type: 'text', text: 'In short.' }, model: 'm' }),
}

const wires = [
  {
    name: 'HTTP',
    begin: async () => {
      const { url, close } = await serve(demoApp({ keys: KEYS }), { port: 0 })
      return connectV1(answerers, new URL(url), close)
    },
  },
  {
    name: 'stdio',
    begin: () =>
      connectV1(
        answerers,
        new StdioClientTransport({ command: process.execPath, args: [...DEMO_ARGS, '--stdio'], stderr: 'ignore' }),
        async () => {},
      ),
  },
]

describe.each(wires)('the v1 client over $name', ({ begin }) => {
  let peer: Peer
  beforeAll(async () => {
    peer = await begin()
  })
  afterAll(() => peer.close())

  test.each([
    ['deploy', { env: 'staging' }, /^Deployed [0-9a-f]{7} to staging$/],
    ['update_work_item', { id: 7, state: 'Resolved' }, /"resolution":"Duplicate","duplicateOf":3\}$/],
    ['trip', {}, /^To Ghent in June by train, with luggage$/],
    ['summarize', { text: 'A long text.' }, /^In short\.$/],
    ['long_sum', { n: 100 }, /^5050$/],
  ])('completes %s', async (name, args, says) => {
    const { content = [], isError } = await peer.call(name, args)
    expect(content.map(({ text }) => text).join()).toMatch(says)
    expect(isError).toBeUndefined()
    expect(peer.problems).toEqual([])
  })
})

test('the v1 client comes back by itself to a stream that was lost, and gets what it missed', async () => {
  const app = demoApp({ keys: KEYS })
  const { url, close, server } = await serve(app, { port: 0 })
  const streams: (() => void)[] = []
  server.on('request', (request, response) => {
    if (request.method === 'POST') streams.push(() => response.destroy())
  })
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    reconnectionOptions: {
      initialReconnectionDelay: 1,
      maxReconnectionDelay: 10,
      reconnectionDelayGrowFactor: 1,
      maxRetries: 5,
    },
  })
  const lossy: Answerers = {
    ...answerers,
    elicit: ({ message }) => {
      // The stream of the call is the last one that was opened: the question came over it, and the answer is not sent yet.
      streams.at(-1)?.()
      return { action: 'accept', content: CONTENT[message] ?? { confirm: true } }
    },
  }
  const peer = await connectV1(lossy, transport, close)
  const { content = [] } = await peer.call('deploy', { env: 'staging' })
  expect(content[0]?.text).toMatch(/^Deployed [0-9a-f]{7} to staging$/)
  await peer.close()
})
