import { send } from 'mcp-rally'
import { describe, expect, test } from 'vitest'
import { demoApp } from '../../examples/tools.ts'

const app = demoApp({ keys: ['a secret of the tests of the demo, long enough'] })

interface Result {
  resultType: string
  content?: { text: string }[]
  structuredContent?: unknown
  isError?: boolean
  inputRequests?: Record<string, { method: string; params: Record<string, unknown> }>
  requestState?: string
}

interface Round {
  answers?: Record<string, unknown>
  state?: string | undefined
}

/** One round of a call. */
async function call(name: string, args: object, { answers, state }: Round = {}): Promise<Result> {
  const response = await send(app, {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: {
      name,
      arguments: args,
      inputResponses: answers,
      requestState: state,
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': { elicitation: {}, sampling: {} },
        progressToken: 'p',
      },
    },
  })
  if (!response || !('result' in response)) throw new Error(`No result: ${JSON.stringify(response)}`)
  return response.result as unknown as Result
}

/** The round after one that asked. */
function answer(name: string, args: object, asked: Result, answers: Record<string, unknown>): Promise<Result> {
  return call(name, args, { answers, state: asked.requestState })
}

function accept(content: object): object {
  return { action: 'accept', content }
}

function textOf({ content = [] }: Result): string {
  return content.map(({ text }) => text).join('\n')
}

describe('deploy', () => {
  const args = { env: 'production' }

  test('asks once it has a plan, and ships what was confirmed', async () => {
    const asked = await call('deploy', args)
    expect(Object.keys(asked.inputRequests ?? {})).toEqual(['confirm'])
    const message = String(asked.inputRequests?.['confirm']?.params['message'])
    const [, sha] = /^Deploy (\w{7}) to production\?$/.exec(message) ?? []
    const done = await answer('deploy', args, asked, { confirm: accept({ confirm: true }) })
    expect(textOf(done)).toBe(`Deployed ${sha} to production`)
    expect(done.isError).toBeUndefined()
  })

  test('leaves it as it was when the answer is no', async () => {
    const done = await answer('deploy', args, await call('deploy', args), { confirm: accept({ confirm: false }) })
    expect(textOf(done)).toBe('Left as it was.')
  })

  test.each([
    ['decline', 'The user declined the question "confirm". Nothing further was done.'],
    ['cancel', 'The user cancelled the question "confirm". Nothing further was done.'],
  ])('ends with a result that says so on a %s', async (action, says) => {
    const done = await answer('deploy', args, await call('deploy', args), { confirm: { action } })
    expect(textOf(done)).toBe(says)
    expect(done.isError).toBe(true)
  })
})

describe('update_work_item', () => {
  const args = { id: 4711, state: 'Resolved' }
  const resolve = async (resolution: string): Promise<Result> =>
    answer('update_work_item', args, await call('update_work_item', args), { resolution: accept({ resolution }) })

  test.each(['Active', 'Closed'])('asks nothing when the state becomes %s', async (state) => {
    const done = await call('update_work_item', { id: 4711, state })
    expect(done.structuredContent).toEqual({ id: 4711, state })
  })

  test('asks for a resolution when the state becomes Resolved', async () => {
    const { inputRequests = {} } = await call('update_work_item', args)
    expect(Object.keys(inputRequests)).toEqual(['resolution'])
    expect(inputRequests['resolution']?.params).toMatchObject({
      message: 'How was work item 4711 resolved?',
      requestedSchema: {
        properties: { resolution: { type: 'string', enum: ['Fixed', "Won't Fix", 'Duplicate', 'By Design'] } },
        required: ['resolution'],
      },
    })
  })

  test.each(['Fixed', "Won't Fix", 'By Design'])('asks nothing more when it is %s', async (resolution) => {
    expect((await resolve(resolution)).structuredContent).toEqual({ id: 4711, state: 'Resolved', resolution })
  })

  test('asks for the original when it is a duplicate, and for nothing that it knows already', async () => {
    const asked = await resolve('Duplicate')
    expect(Object.keys(asked.inputRequests ?? {})).toEqual(['original'])
    const done = await answer('update_work_item', args, asked, { original: accept({ duplicateOf: 4301 }) })
    expect(done.structuredContent).toEqual({ ...args, resolution: 'Duplicate', duplicateOf: 4301 })
    expect(JSON.parse(textOf(done))).toEqual(done.structuredContent)
  })

  test.each([
    { id: '4711', state: 'Resolved' },
    { id: 4711, state: 'Solved' },
    { id: 47.11, state: 'Resolved' },
    { state: 'Resolved' },
  ])('refuses the arguments %j in words that the model can use', async (wrong) => {
    const refused = await call('update_work_item', wrong)
    expect(refused.isError).toBe(true)
    expect(textOf(refused)).toMatch(/\b(id|state)\b/)
  })

  test('asks again, and says why, when the original can not be a work item', async () => {
    const asked = await resolve('Duplicate')
    const again = await answer('update_work_item', args, asked, { original: accept({ duplicateOf: 0 }) })
    expect(again.inputRequests?.['original']?.params['message']).toMatch(
      /^Which work item is 4711 a duplicate of\?\n\n.*duplicateOf/,
    )
  })
})

describe('trip', () => {
  const answers = {
    where: accept({ city: 'Ghent' }),
    when: accept({ month: 'June' }),
    how: accept({ transport: 'bicycle' }),
  }

  test('asks three questions together in one round', async () => {
    const asked = await call('trip', {})
    expect(Object.keys(asked.inputRequests ?? {})).toEqual(['where', 'when', 'how'])
    const done = await answer('trip', {}, asked, answers)
    expect(textOf(done)).toBe('To Ghent in June by bicycle, without luggage')
  })

  test('asks only for what is missing when some of the answers come', async () => {
    const { how, ...some } = answers
    const asked = await answer('trip', {}, await call('trip', {}), some)
    expect(Object.keys(asked.inputRequests ?? {})).toEqual(['how'])
    expect(textOf(await answer('trip', {}, asked, { how }))).toBe('To Ghent in June by bicycle, without luggage')
  })
})

describe('summarize', () => {
  test("asks the client's model, and gives what it said", async () => {
    const args = { text: 'It was a dark and stormy night.' }
    const asked = await call('summarize', args)
    expect(asked.inputRequests?.['summary']).toMatchObject({
      method: 'sampling/createMessage',
      params: { messages: [{ role: 'user', content: { type: 'text', text: args.text } }] },
    })
    const said = { role: 'assistant', model: 'a-model', content: { type: 'text', text: 'Dark, stormy.' } }
    expect(textOf(await answer('summarize', args, asked, { summary: said }))).toBe('Dark, stormy.')
  })
})

describe('long_sum', () => {
  test.each([
    [1, '1'],
    [100, '5050'],
  ])('adds up the numbers from 1 to %i', async (n, sum) => {
    expect(textOf(await call('long_sum', { n }))).toBe(sum)
  })

  test.each([0, 501, 1.5, 'many'])('refuses n = %j', async (n) => {
    const refused = await call('long_sum', { n })
    expect(refused.isError).toBe(true)
    expect(textOf(refused)).toContain('n: ')
  })
})
