// The official clients of the 2025 era, asked everything that a handler may ask, over every wire.
import type { ElicitResult } from '@modelcontextprotocol/sdk/types.js'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Answerers, Asked, Peer, Said } from './peers.ts'
import { wires } from './peers.ts'

const CONTENT: readonly (readonly [RegExp, ElicitResult['content']])[] = [
  [/^Deploy/, { confirm: true }],
  [/^Your name/, { name: 'Ada' }],
  [/^How old/, { age: 36 }],
  [/^Where to/, { choice: 'hills' }],
  [/^Name \d/, { name: 'Bob' }],
  [/^Which/, { several: ['a', 'c'] }],
  [/^(What for|Who reads)/, { context: 'school' }],
  [/^(Go on|Please sign in|Look here)/, undefined],
]

const asked: Asked[] = []

function accept(question: Asked): ElicitResult {
  asked.push(question)
  const [, content] = CONTENT.find(([pattern]) => pattern.test(question.message)) ?? []
  return content === undefined ? { action: 'accept' } : { action: 'accept', content }
}

const answerers = {
  elicit: accept,
  sample: () => ({ role: 'assistant', content: { type: 'text', text: 'All in all.' }, model: 'model' }),
  roots: () => [{ uri: 'file:///one' }, { uri: 'file:///two', name: 'two' }],
} satisfies Answerers

const textOf = ({ content = [] }: Said): string => content.map(({ text }) => text).join('\n')

describe.each(wires)('$name', ({ connect }) => {
  let peer: Peer
  const user: Answerers = { ...answerers }
  beforeAll(async () => {
    peer = await connect(user)
  })
  beforeEach(() => {
    Object.assign(user, answerers)
    asked.length = 0
  })
  afterEach(() => {
    const problems = peer.problems.splice(0)
    if (problems.length > 0) throw new Error(`The revision does not allow this: ${problems.join('; ')}`)
  })
  afterAll(() => peer.close())

  test('learns who serves it and what there is', async () => {
    expect(peer.client.getServerVersion()).toEqual({ name: 'older', version: '1.0.0', title: 'For older clients' })
    expect(peer.client.getInstructions()).toBe('Be patient.')
    expect(peer.client.getServerCapabilities()).toEqual({
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: { listChanged: true, subscribe: true },
      completions: {},
      logging: {},
    })
    const { tools } = await peer.client.listTools()
    expect(tools.find(({ name }) => name === 'greet')).toMatchObject({ title: 'Greets' })
    expect(tools.find(({ name }) => name === 'add')).toMatchObject({ outputSchema: { type: 'object' } })
    expect(tools.find(({ name }) => name === 'list')).not.toHaveProperty('outputSchema')
    expect((await peer.client.listPrompts()).prompts.map(({ name }) => name)).toEqual(['brief', 'needs_model'])
    expect((await peer.client.listResources()).resources).toMatchObject([{ uri: 'note://plain', title: 'Plain' }])
    expect((await peer.client.listResourceTemplates()).resourceTemplates).toMatchObject([{ name: 'by-id' }])
    await peer.client.ping()
  })

  test.each([
    ['a form between two steps', 'deploy', { env: 'prod' }, /^Deployed plan (\d) of \1 to prod$/, 1],
    ['a form of which only the outcome counts', 'outcome', {}, /^The user said accept\.$/, 1],
    ['a model', 'summarize', {}, /^All in all\.$/, 0],
    ['roots', 'workspace', {}, /^file:\/\/\/one file:\/\/\/two$/, 0],
    ['a page to visit', 'sign_in', {}, /^Signed in\.$/, 1],
    ['a page that is visited late, and asked for twice', 'sign_in', { looks: 2 }, /^Signed in\.$/, 2],
    ['a choice of several', 'topics', {}, /^a\+c$/, 1],
    ['several rounds', 'survey', {}, /^Ada is 36\.$/, 2],
    ['several questions at once', 'trip', {}, /^hills, All in all\., 2$/, 1],
    ['rounds by hand', 'wizard', {}, /^Bob, Bob$/, 2],
    ['as many rounds by hand as there may be', 'wizard', { rounds: 10 }, /^(Bob, ){9}Bob$/, 10],
    ['a round by hand without a question', 'pause', {}, /^Went on after a pause\.$/, 0],
    ['a page to visit by hand', 'look', {}, /^Was told accept\.$/, 1],
    ['nothing', 'greet', {}, /^Hello$/, 0],
  ])('is asked for %s', async (_what, name, args, text, questions) => {
    const result = await peer.call(name, args)
    expect(textOf(result)).toMatch(text)
    expect(result.isError).toBeUndefined()
    expect(asked).toHaveLength(questions)
  })

  test('gets an error for a call that takes too many rounds by hand', async () => {
    const result = await peer.call('wizard', { rounds: 11 })
    expect(result.isError).toBe(true)
    expect(textOf(result)).toMatch(/inputRequired more than 10 times/)
    expect(asked).toHaveLength(10)
  })

  test.each(['decline', 'cancel'] as const)('may %s a question', async (action) => {
    user.elicit = () => ({ action })
    peer.received.length = 0
    expect(textOf(await peer.call('outcome'))).toBe(`The user said ${action}.`)
    const done = action === 'decline' ? 'declined' : 'cancelled'
    const result = await peer.call('deploy', { env: 'prod' })
    expect(result).toMatchObject({ isError: true })
    expect(textOf(result)).toBe(`The user ${done} the question "confirm". Nothing further was done.`)
    expect(textOf(await peer.call('look'))).toBe(`Was told ${action}.`)
    expect(textOf(await peer.call('sign_in'))).toBe(`The user ${done} the question "page". Nothing further was done.`)
    expect(peer.received.map(({ method }) => method)).not.toContain('notifications/elicitation/complete')
  })

  test('is asked again when an answer does not fit, with the reason', async () => {
    user.elicit = (question) => {
      // The form cannot say that this is no name, so no client refuses to send it.
      if (asked.length < 2 && question.message.startsWith('Your name')) {
        asked.push(question)
        return { action: 'accept', content: { name: 'nobody' } }
      }
      return accept(question)
    }
    expect(textOf(await peer.call('survey'))).toBe('Ada is 36.')
    const again = 'Your name?\n\nThe last answer did not fit: '
    expect(asked.map(({ message }) => message)).toEqual([
      'Your name?',
      expect.stringContaining(again),
      expect.stringContaining(again),
      'How old are you, Ada?',
    ])
  })

  test('is asked the same three times at most', async () => {
    user.elicit = (question) => {
      asked.push(question)
      return { action: 'accept', content: { name: 'nobody' } }
    }
    const result = await peer.call('survey')
    expect(result.isError).toBe(true)
    expect(textOf(result)).toMatch(/^The question "name" was asked 3 times, and no answer was valid/)
    expect(asked).toHaveLength(3)
  })

  test('may fail at a question, which ends the call and says why', async () => {
    user.elicit = () => {
      throw new Error('There is no screen.')
    }
    const result = await peer.call('outcome')
    expect(result.isError).toBe(true)
    expect(textOf(result)).toMatch(/^The client could not answer the question "q": .*There is no screen\.$/)
  })

  test('gets the same id each time for the page to visit, and a notification when the visit is done', async () => {
    peer.received.length = 0
    await peer.call('sign_in', { looks: 2 })
    expect(asked.map(({ url }) => url?.replace(/=.*/, ''))).toEqual(Array(2).fill('https://pages.example/?t'))
    const [first, second] = asked
    expect(first?.elicitationId).toMatch(/^[0-9a-f-]{36}$/)
    expect(second?.elicitationId).toBe(first?.elicitationId)
    const told = peer.received.filter(({ method }) => method === 'notifications/elicitation/complete')
    expect(told.map(({ params }) => params)).toEqual([{ elicitationId: first?.elicitationId }])
  })

  test('is asked by a prompt and by a resource', async () => {
    expect((await peer.client.getPrompt({ name: 'brief', arguments: { topic: 'moon' } })).messages).toEqual([
      { role: 'user', content: { type: 'text', text: 'moon: school' } },
    ])
    expect((await peer.client.readResource({ uri: 'note://by/7' })).contents).toEqual([
      { uri: 'note://by/7', text: '7 for school' },
    ])
    expect((await peer.client.readResource({ uri: 'note://plain' })).contents).toEqual([
      { uri: 'note://plain', mimeType: 'text/plain', text: 'A note.' },
    ])
  })

  test.each(['note://elsewhere', 'note://by/none'])('is told by -32002 that there is no %s', async (uri) => {
    await expect(peer.client.readResource({ uri })).rejects.toThrow(`Resource not found: ${uri}`)
    // On the wire, because one of the clients tells of it by the code of a later revision.
    expect(peer.received.at(-1)).toMatchObject({ error: { code: -32002, data: { uri } } })
  })

  test('completes an argument', async () => {
    const ref = { type: 'ref/prompt', name: 'brief' } as const
    const { completion } = await peer.client.complete({ ref, argument: { name: 'topic', value: 'm' } })
    expect(completion).toEqual({ values: ['moon', 'mars'], total: 2, hasMore: false })
  })

  test('gets structured content where it is an object, and text always', async () => {
    expect(await peer.call('add', { a: 1 })).toMatchObject({ structuredContent: { sum: 2 } })
    const list = await peer.call('list')
    expect(textOf(list)).toBe('[1,2,3]')
    expect(list).not.toHaveProperty('structuredContent')
  })

  test('gets failures and wrong arguments as results, and wrong names as errors', async () => {
    expect(await peer.call('fail')).toMatchObject({ isError: true, content: [{ text: 'The disk is full.' }] })
    expect(await peer.call('deploy', { env: 7 })).toMatchObject({ isError: true })
    await expect(peer.call('nothing')).rejects.toMatchObject({ code: -32602 })
  })

  test('gets a log from the level on that it has set', async () => {
    const levels = async (): Promise<unknown[]> => {
      peer.received.length = 0
      await peer.call('report')
      return peer.received.flatMap(({ method, params }) => (method === 'notifications/message' ? [params] : []))
    }
    const warning = { level: 'warning', logger: 'clock', data: { it: 'is late' } }
    await peer.client.setLoggingLevel('debug')
    expect(await levels()).toEqual([{ level: 'debug', data: 'details' }, warning])
    await peer.client.setLoggingLevel('warning')
    expect(await levels()).toEqual([warning])
    await peer.client.setLoggingLevel('error')
    expect(await levels()).toEqual([])
    await peer.client.setLoggingLevel('info')
  })

  test('cancels a call, and the signal of the handler aborts', async () => {
    const abort = new AbortController()
    const call = peer.call('wait', {}, { signal: abort.signal })
    call.catch(() => {})
    await peer.seen('notifications/message')
    abort.abort('No more.')
    await expect(call).rejects.toThrow('No more.')
    expect(textOf(await peer.call('greet'))).toBe('Hello')
  })

  test('cancels a call that asks it something, and the question is withdrawn', async () => {
    const abort = new AbortController()
    peer.received.length = 0
    let answer: (() => void) | undefined
    user.elicit = () =>
      new Promise((resolve) => {
        answer = () => resolve({ action: 'cancel' })
      })
    const call = peer.call('outcome', {}, { signal: abort.signal })
    call.catch(() => {})
    const { id } = await peer.seen('elicitation/create')
    abort.abort('No more.')
    expect((await peer.seen('notifications/cancelled')).params).toMatchObject({ requestId: id })
    answer?.()
    await expect(call).rejects.toThrow('No more.')
  })

  test('tells handlers its revision and what it has declared', async () => {
    expect(textOf(await peer.call('revision'))).toBe('2025-11-25 elicitation.form elicitation.url sampling roots')
  })
})

describe.each(wires)('$name without anything to answer with', ({ connect }) => {
  test('learns which capability is missing: from the result of a tool, otherwise from an error', async () => {
    const peer = await connect({})
    const result = await peer.call('deploy', { env: 'prod' })
    expect(result.isError).toBe(true)
    expect(textOf(result)).toMatch(/question "confirm"\), and the app that sent it cannot ask its user/)
    await expect(peer.client.getPrompt({ name: 'needs_model' })).rejects.toMatchObject({
      code: -32603,
      data: { requiredCapabilities: { sampling: {} } },
    })
    expect(textOf(await peer.call('revision'))).toBe('2025-11-25')
    expect(peer.problems).toEqual([])
    await peer.close()
  })
})
