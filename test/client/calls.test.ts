// Whole calls over every wire, against a real app: what comes back is a plain result, however many rounds it took.
import type {
  AnswerContext,
  ClientOptions,
  FormQuestion,
  LogEntry,
  ProgressUpdate,
  ServerQuestion,
} from 'mcp-rally/client'
import { ClientError, ProtocolError } from 'mcp-rally/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Connected } from './wires.ts'
import { inMemory, textOf, wires } from './wires.ts'

interface Asked {
  question: ServerQuestion
  context: AnswerContext
}

/** What the user of this test says to each question, and what they were asked. */
function user(): { asked: Asked[]; options: ClientOptions; logged: LogEntry[] } {
  const asked: Asked[] = []
  const logged: LogEntry[] = []
  const knows: Record<string, unknown> = { size: 'large', name: 'Ada', city: 'London', choice: 'speed' }
  const options: ClientOptions = {
    name: 'tester',
    version: '3.1.4',
    onElicit: (question, context) => {
      asked.push({ question, context })
      const { required = [] } = question.form
      return { action: 'accept', content: Object.fromEntries(required.map((name) => [name, knows[name] ?? true])) }
    },
    onVisit: (question, context) => {
      asked.push({ question, context })
      return { action: 'accept' }
    },
    onSample: async (question, context) => {
      asked.push({ question, context })
      return { role: 'assistant', content: { type: 'text', text: 'Good day' }, model: 'a model' }
    },
    onRoots: () => [{ uri: 'file:///home/ada', name: 'home' }],
    onLog: (entry) => void logged.push(entry),
  }
  return { asked, options, logged }
}

describe.each(wires)('over $name', (wire) => {
  const { asked, options, logged } = user()
  let connected: Connected
  beforeAll(async () => {
    connected = await wire.connect(options)
  })
  afterAll(() => connected.close())

  test('the server has introduced itself', () => {
    expect(connected.client.server).toMatchObject({
      name: 'tested',
      version: '2.0.0',
      title: 'Tested',
      instructions: 'Ask for anything.',
      capabilities: { tools: expect.anything(), prompts: expect.anything(), resources: expect.anything() },
    })
  })

  test('everything that the server has is listed', async () => {
    const { client } = connected
    expect((await client.listTools()).map(({ name }) => name)).toContain('together')
    expect((await client.listPrompts()).map(({ name }) => name)).toEqual(['review'])
    expect((await client.listResources()).map(({ uri }) => uri)).toEqual(['config://app'])
    expect((await client.listResourceTemplates()).map(({ uriTemplate }) => uriTemplate)).toEqual(['payroll://{year}'])
  })

  test('a tool that asks nothing gives its result', async () => {
    const { client } = connected
    const result = await client.callTool('add', { a: 1, b: 2 })
    expect(result).toMatchObject({ resultType: 'complete', structuredContent: { sum: 3 } })
  })

  test('two rounds of questions are answered, with defaults, and are told whose they are', async () => {
    asked.length = 0
    const { client } = connected
    expect(textOf(await client.callTool('order', { what: 'coffee' }))).toBe('A large coffee with milk.')
    expect(asked.map(({ question }) => (question as FormQuestion).message)).toEqual([
      'Which coffee?',
      'A large coffee, sure?',
    ])
    for (const { context } of asked) {
      expect(context.server.name).toBe('tested')
      expect(context.call).toEqual({ tool: 'order', arguments: { what: 'coffee' } })
      expect(context.signal.aborted).toBe(false)
    }
  })

  test('questions of one round are asked together, whatever they are', async () => {
    asked.length = 0
    expect(textOf(await connected.client.callTool('together'))).toBe('Good day Ada of London')
    expect(asked.map(({ question }) => `${question.kind} ${question.key}`).toSorted()).toEqual([
      'form city',
      'form name',
      'sample greeting',
    ])
  })

  test('a page to visit is shown with its whole address and host, and not fetched', async () => {
    asked.length = 0
    expect(textOf(await connected.client.callTool('page'))).toBe('Signed in.')
    const [{ question } = {}] = asked
    expect(question).toEqual({
      kind: 'visit',
      key: 'page',
      message: 'Please sign in.',
      url: 'https://sign-in.example:8443/start?a=1',
      host: 'sign-in.example:8443',
      lookalike: false,
    })
  })

  test('roots are given', async () => {
    expect(textOf(await connected.client.callTool('folders'))).toBe('file:///home/ada')
  })

  test('prompts and resources take rounds as tools do', async () => {
    const { client } = connected
    const prompt = await client.getPrompt('review', { file: 'a.ts' })
    expect(prompt.messages[0]?.content).toMatchObject({ text: 'Review a.ts for speed.' })
    const { contents } = await client.readResource('payroll://2026')
    expect(contents).toMatchObject([{ uri: 'payroll://2026', text: 'The payroll of 2026' }])
    expect((await client.readResource('config://app')).contents).toMatchObject([{ text: 'colour: green' }])
  })

  test('arguments are completed', async () => {
    const ref = { type: 'ref/prompt', name: 'review' } as const
    expect(await connected.client.complete(ref, { name: 'file', value: 'a' })).toMatchObject({
      values: ['a.ts', 'ab.ts'],
    })
  })

  test('progress and logs are told as they come', async () => {
    const progress: ProgressUpdate[] = []
    logged.length = 0
    const result = await connected.client.callTool('busy', {}, { onProgress: (step) => progress.push(step) })
    expect(textOf(result)).toBe('Done.')
    expect(progress).toEqual([
      { progress: 1, total: 2, message: 'half' },
      { progress: 2, total: 2 },
    ])
    expect(logged).toMatchObject([{ level: 'info', data: { at: 'half' } }])
  })

  test('a failure for the model to read is a result, and one of the protocol an error', async () => {
    const { client } = connected
    expect(await client.callTool('fails')).toMatchObject({ isError: true, content: [{ text: 'It broke.' }] })
    const unknown = client.callTool('nothing of that name')
    await expect(unknown).rejects.toBeInstanceOf(ProtocolError)
    await expect(unknown).rejects.toMatchObject({ rpcCode: -32602, message: 'Unknown tool: nothing of that name' })
  })

  test('a name that no header can carry is no trouble', async () => {
    await expect(connected.client.readResource('config://\u00e9t\u00e9')).rejects.toMatchObject({
      rpcCode: -32602,
      message: expect.stringContaining('Resource not found'),
    })
  })

  test('calls run side by side', async () => {
    const sums = await Promise.all(
      Array.from({ length: 20 }, (_, i) => connected.client.callTool('add', { a: i, b: i })),
    )
    expect(sums.map(({ structuredContent }) => structuredContent)).toEqual(
      Array.from({ length: 20 }, (_, i) => ({ sum: 2 * i })),
    )
  })
})

describe.each(wires)('over $name, a user who says no', (wire) => {
  test.each(['decline', 'cancel'] as const)('is heard: %s', async (action) => {
    const { client, close } = await wire.connect({ onElicit: () => ({ action }) })
    expect(textOf(await client.callTool('outcome'))).toBe(action)
    const refused = await client.callTool('refused')
    expect(refused.isError).toBe(true)
    expect(textOf(refused)).toContain(action === 'decline' ? 'declined' : 'cancelled')
    await close()
  })
})

test('what nobody answers is not declared, and the server says what it would need', async () => {
  const { client, close } = await inMemory.connect({ onVisit: () => ({ action: 'accept' }) })
  await expect(client.callTool('outcome')).rejects.toMatchObject({
    rpcCode: -32021,
    data: { requiredCapabilities: { elicitation: { form: {} } } },
  })
  await close()
})

test('an answerer that throws ends the call with that very error, and the others are told', async () => {
  const mistake = new Error('I cannot think.')
  let isToldOf: Promise<unknown> | undefined
  const { client, close } = await inMemory.connect({
    onElicit: (_question, { signal }) => {
      isToldOf ??= new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason)))
      return new Promise(() => {})
    },
    onSample: () => {
      throw mistake
    },
  })
  await expect(client.callTool('together')).rejects.toBe(mistake)
  expect(await isToldOf).toBe(mistake)
  await close()
})

test('an answer that does not fit ends the call, names the property, and is not sent', async () => {
  const { client, close } = await inMemory.connect({
    onElicit: () => ({ action: 'accept', content: { size: 'huge' } }),
  })
  const call = client.callTool('order', { what: 'tea' })
  await expect(call).rejects.toBeInstanceOf(ClientError)
  await expect(call).rejects.toMatchObject({
    code: 'ANSWER_INVALID',
    message: 'The answer to "size" does not match its question: size must be one of small, large.',
    pending: { method: 'tools/call', params: { name: 'order', arguments: { what: 'tea' } } },
  })
  await close()
})
