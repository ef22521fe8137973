import type { CallToolResult, ElicitRequestParams, ElicitResult } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { specValidator } from '../spec/validate.ts'
import type { Answerers, Connected } from './wires.ts'
import { wires } from './wires.ts'

const answers: readonly [RegExp, NonNullable<ElicitResult['content']>][] = [
  [/^web will cost/, { confirm: true }],
  [/^Where should web run/, { choice: 'eu-west' }],
  [/^Deploy .* to staging\?$/, { confirm: true }],
  [/^How was work item 7 resolved\?$/, { resolution: 'Duplicate' }],
  [/^Which work item is 7 a duplicate of\?$/, { duplicateOf: 3 }],
  [/^Where would you like to go\?$/, { city: 'Ghent' }],
  [/^In which month\?$/, { month: 'June' }],
  [/^How would you like to travel\?$/, { transport: 'train', luggage: true }],
]

/** One handler for each kind of question, as a host registers them: it serves whatever tool asks. */
const everybody = {
  elicit: ({ message }) => ({ action: 'accept', content: answerTo(message) }),
  sample: ({ messages }) => ({
    role: 'assistant',
    model: 'a-model',
    content: { type: 'text', text: `${messages.length} message, in short` },
  }),
  roots: () => [{ uri: 'file:///home/ada/rally', name: 'rally' }, { uri: 'file:///tmp' }],
} satisfies Answerers

const calls = [
  { tool: 'deploy', args: { env: 'staging' }, rounds: 2, says: /^Deployed [0-9a-f]{7} to staging$/ },
  {
    tool: 'update_work_item',
    args: { id: 7, state: 'Resolved' },
    rounds: 3,
    says: /^\{"id":7,"state":"Resolved","resolution":"Duplicate","duplicateOf":3\}$/,
  },
  { tool: 'trip', args: {}, rounds: 2, says: /^To Ghent in June by train, with luggage$/ },
  { tool: 'summarize', args: { text: 'A long text.' }, rounds: 2, says: /^1 message, in short$/ },
  { tool: 'long_sum', args: { n: 100 }, rounds: 1, says: /^5050$/ },
  { tool: 'provision_vm', args: { name: 'web' }, rounds: 3, says: /^web runs in eu-west at 198\.51\.100\.\d+$/ },
]

describe.each(wires)('the official client over $name', (wire) => {
  const user: Answerers = { ...everybody }
  let demo: Connected
  let questions: Connected

  beforeAll(async () => {
    ;[demo, questions] = await Promise.all([wire.demo(user), wire.questions(user)])
  })
  afterAll(() => Promise.all([demo.close(), questions.close()]))

  beforeEach(() => {
    Object.assign(user, everybody)
    demo.requests.length = 0
    demo.received.length = 0
  })

  test.each(calls)('completes $tool in $rounds rounds', async ({ tool, args, rounds, says }) => {
    const { client, requests } = demo
    const result = await client.callTool({ name: tool, arguments: args })
    expect(textOf(result)).toMatch(says)
    expect(result.isError).toBeUndefined()
    expect(requests).toEqual(Array.from({ length: rounds }, () => 'tools/call'))
  })

  test('is asked the three questions of a trip in one round', async () => {
    const { client, requests } = demo
    const asked: string[] = []
    user.elicit = ({ message }) => {
      asked.push(`${message} (after ${requests.length} request)`)
      return { action: 'accept', content: answerTo(message) }
    }
    await client.callTool({ name: 'trip' })
    expect(asked.toSorted()).toEqual([
      'How would you like to travel? (after 1 request)',
      'In which month? (after 1 request)',
      'Where would you like to go? (after 1 request)',
    ])
    expect(requests).toEqual(['tools/call', 'tools/call'])
  })

  test.each([
    { action: 'decline', says: 'The user declined the question "confirm". Nothing further was done.' },
    { action: 'cancel', says: 'The user cancelled the question "confirm". Nothing further was done.' },
  ] as const)('gets a result that the model can read when the user chooses $action', async ({ action, says }) => {
    user.elicit = () => ({ action })
    const result = await demo.client.callTool({ name: 'deploy', arguments: { env: 'staging' } })
    expect(textOf(result)).toBe(says)
    expect(result.isError).toBe(true)
  })

  test('is asked again, with the reason, when an answer does not fit', async () => {
    const asked: string[] = []
    user.elicit = ({ message }) => {
      asked.push(message)
      return { action: 'accept', content: { resolution: asked.length === 1 ? 'Unheard of' : 'Fixed' } }
    }
    const result = await demo.client.callTool({ name: 'update_work_item', arguments: { id: 7, state: 'Resolved' } })
    expect(result.structuredContent).toEqual({ id: 7, state: 'Resolved', resolution: 'Fixed' })
    expect(asked).toEqual([
      'How was work item 7 resolved?',
      expect.stringMatching(/^How was work item 7 resolved\?\n\n.*resolution/),
    ])
  })

  // On the wire and not through `onprogress`: where notifications and the response come in one chunk, the client forgets
  // whom to tell of progress before it has told them.
  test('is sent the progress of long_sum, each in its turn and all of it before the result', async () => {
    const { client, received } = demo
    await client.callTool({ name: 'long_sum', arguments: { n: 5 } }, { onprogress: () => {} })
    expect(received.map((message) => ('method' in message ? message.params : 'result'))).toEqual([
      ...[1, 2, 3, 4, 5].map((progress) => ({ progressToken: expect.anything(), progress, total: 5 })),
      'result',
    ])
    expect(received.slice(0, 5).flatMap(specValidator('ProgressNotification'))).toEqual([])
  })

  test('tells of progress while a call is under way', async () => {
    const { client } = questions
    const abort = new AbortController()
    const progress = new Promise((resolve) => {
      const call = client.callTool({ name: 'wait' }, { onprogress: resolve, signal: abort.signal })
      call.catch(() => {})
    })
    expect(await progress).toEqual({ progress: 1, total: 2, message: 'half of it is done' })
    abort.abort()
  })

  test('discovers the server and lists its tools', async () => {
    const { client, requests } = demo
    expect(client.getProtocolEra()).toBe('modern')
    expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28')
    expect(client.getServerVersion()).toEqual({ name: 'rally-demo', version: '1.0.0' })
    const discovered = await client.discover()
    expect(discovered.supportedVersions).toEqual(['2026-07-28'])
    expect(discovered.capabilities).toHaveProperty('tools')
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(calls.map(({ tool }) => tool))
    expect(tools.flatMap(specValidator('Tool'))).toEqual([])
    expect(requests).toEqual(['server/discover', 'tools/list'])
  })

  test('holds the structured output against the schema that was listed', async () => {
    const { client } = demo
    // With the list at hand the client itself refuses a result that does not fit it.
    const { tools } = await client.listTools()
    const listed = tools.find(({ name }) => name === 'update_work_item')
    expect(listed?.outputSchema).toMatchObject({ type: 'object', required: ['id', 'state'] })
    const result = await client.callTool({ name: 'update_work_item', arguments: { id: 7, state: 'Resolved' } })
    expect(result.structuredContent).toEqual({ id: 7, state: 'Resolved', resolution: 'Duplicate', duplicateOf: 3 })
  })

  test('is told what is missing when it has no model to ask', async () => {
    const bare = await wire.demo({ elicit: () => ({ action: 'decline' }) })
    const call = bare.client.callTool({ name: 'summarize', arguments: { text: 'A long text.' } })
    await expect(call).rejects.toMatchObject({ code: -32021, data: { requiredCapabilities: { sampling: {} } } })
    await bare.close()
  })

  test('sends its user to a page and goes on once they were there', async () => {
    const asked: string[] = []
    user.elicit = async (params) => {
      asked.push(params.message)
      await fetch(addressOf(params))
      return { action: 'accept' }
    }
    expect(textOf(await questions.client.callTool({ name: 'sign_in' }))).toBe('Signed in.')
    expect(asked).toEqual(['Please sign in.'])
  })

  test('asks its user again when they agreed to go to the page and did not', async () => {
    const asked: string[] = []
    user.elicit = async (params) => {
      asked.push(params.message)
      if (asked.length > 1) await fetch(addressOf(params))
      return { action: 'accept' }
    }
    expect(textOf(await questions.client.callTool({ name: 'sign_in' }))).toBe('Signed in.')
    expect(asked).toEqual([
      'Please sign in.',
      expect.stringMatching(/^Please sign in\.\n\nThis has not been completed/),
    ])
  })

  test('gives its roots', async () => {
    const result = await questions.client.callTool({ name: 'workspace' })
    expect(textOf(result)).toBe('rally: file:///home/ada/rally\n(unnamed): file:///tmp')
  })

  test.each([
    { label: 'the quiet one', while: 'nothing has been sent back yet', options: {} },
    { label: 'the chatty one', while: 'notifications are coming in', options: { onprogress: () => {} } },
  ])('cancels the work on the server by its abort signal while $while', async ({ label, options }) => {
    const { client, complained } = questions
    const abort = new AbortController()
    const call = client.callTool({ name: 'wait', arguments: { label } }, { ...options, signal: abort.signal })
    await complained.match(new RegExp(`${label} is waiting`))
    abort.abort(new Error('The user has changed their mind.'))
    await expect(call).rejects.toThrow('The user has changed their mind.')
    await complained.match(new RegExp(`${label} is cancelled`))
  })
})

function answerTo(message: string): NonNullable<ElicitResult['content']> {
  const [, content] = answers.find(([question]) => question.test(message)) ?? []
  if (content === undefined) throw new Error(`Nobody expected the question "${message}".`)
  return content
}

function addressOf(params: ElicitRequestParams): string {
  if (!('url' in params)) throw new Error(`"${params.message}" should send its user to a page.`)
  return params.url
}

function textOf({ content }: CallToolResult): string {
  return content.map((block) => (block.type === 'text' ? block.text : `(${block.type})`)).join('\n')
}
