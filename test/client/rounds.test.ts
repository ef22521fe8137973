// Rounds in the caller's own hands: answered one by one, left where they are, and taken up by somebody else on another day.
import { fileURLToPath } from 'node:url'
import type { CallToolResult, Client, GetPromptResult, PendingCall, ServerQuestion, CallRound } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { Child } from '../interop/child.ts'
import { testApp } from './app.mjs'
import { asks, deferred, done, scripted, YES, yes } from './scripted.ts'
import { SERVER, textOf } from './wires.ts'

const silent = { warn: () => {}, error: () => {} }

const clients = new Set<Client>()
afterEach(async () => {
  for (const client of clients) await client.close()
  clients.clear()
})

async function connected(options: Parameters<typeof connect>[1] = { can: ['elicitation.form'] }): Promise<Client> {
  const client = await connect(testApp({ logger: silent }), options)
  clients.add(client)
  return client
}

const size = { action: 'accept', content: { size: 'small' } } as const
const sure = { action: 'accept', content: { sure: true } } as const
const order = { tool: 'order', arguments: { what: 'tea' } } as const

/** Through JSON, as a file would carry it. */
function carried<P extends PendingCall>(pending: P): P {
  return JSON.parse(JSON.stringify(pending)) as P
}

/** Takes a call to its first question, and leaves it there. */
async function begun(client: Client): Promise<PendingCall> {
  for await (const round of client.rounds(order)) {
    if (round.kind === 'asks') return carried(round.pending)
  }
  throw new Error('It asked nothing.')
}

describe('the rounds of a call', () => {
  test('are values, each answered by hand', async () => {
    const client = await connected()
    const seen: string[] = []
    for await (const round of client.rounds(order)) {
      switch (round.kind) {
        case 'asks':
          seen.push(...round.questions.map(({ key }) => key))
          round.answer(seen.length === 1 ? { size } : { sure })
          break
        case 'deferred':
          throw new Error('Nobody put it off.')
        case 'done': {
          const result: CallToolResult = round.result
          seen.push(String(textOf(result)))
        }
      }
    }
    expect(seen).toEqual(['size', 'sure', 'A small tea with milk.'])
  })

  test('that nobody answered by hand are answered by the answerers', async () => {
    const onElicit = vi.fn<(question: ServerQuestion) => typeof size | typeof sure>(({ key }) =>
      key === 'size' ? size : sure,
    )
    const client = await connected({ onElicit })
    const kinds: string[] = []
    for await (const round of client.rounds(order)) {
      kinds.push(round.kind)
      if (round.kind === 'asks' && kinds.length === 1) round.answer({ size })
    }
    expect(kinds).toEqual(['asks', 'asks', 'done'])
    expect(onElicit.mock.calls.map(([{ key }]) => key)).toEqual(['sure'])
  })

  test('may be answered in part, the answerers being asked the rest', async () => {
    const onElicit = vi.fn<() => typeof YES>(() => YES)
    const { client, requests } = await scripted((_request, n) => (n === 0 ? asks(['a', 'b']) : done('ok')), {
      onElicit,
    })
    for await (const round of client.rounds({ tool: 'deploy' })) {
      if (round.kind === 'asks') round.answer({ a: { action: 'decline' } })
    }
    expect(requests[1]?.params['inputResponses']).toEqual({ a: { action: 'decline' }, b: YES })
    expect(onElicit).toHaveBeenCalledOnce()
  })

  test('that nobody answers at all end the call, with where to go on from', async () => {
    const client = await connected()
    const rounds = client.rounds(order)
    const { value: first } = await rounds.next()
    expect(first).toMatchObject({ kind: 'asks' })
    await expect(rounds.next()).rejects.toMatchObject({
      code: 'NO_ANSWERER',
      pending: (first as { pending: PendingCall }).pending,
    })
  })

  test('refuse an answer that does not fit, or to no question, where it is given', async () => {
    const client = await connected()
    for await (const round of client.rounds(order)) {
      if (round.kind !== 'asks') continue
      expect(() => round.answer({ size: { action: 'accept', content: {} } })).toThrow('size is required')
      expect(() => round.answer({ other: size })).toThrow(
        'This round has no question "other". Its questions are "size".',
      )
      break
    }
  })

  test('that are put off are seen too', async () => {
    const { client } = await scripted((_request, n) => [deferred('s0'), asks(['a'], 's1'), done('ok')][n] ?? {}, yes)
    const seen: CallRound<unknown>[] = []
    for await (const round of client.rounds({ tool: 'deploy' })) seen.push(round)
    expect(seen).toMatchObject([
      { kind: 'deferred', pending: { requestState: 's0' } },
      { kind: 'asks', pending: { requestState: 's1' } },
      { kind: 'done', result: { content: [{ text: 'ok' }] } },
    ])
  })

  test('of a prompt and of a resource are rounds like any other', async () => {
    const client = await connected()
    const texts: unknown[] = []
    for await (const round of client.rounds({ prompt: 'review', arguments: { file: 'a.ts' } })) {
      if (round.kind === 'asks') round.answer({ focus: { action: 'accept', content: { choice: 'speed' } } })
      if (round.kind !== 'done') continue
      const result: GetPromptResult = round.result
      texts.push(result.messages[0]?.content)
    }
    for await (const round of client.rounds({ resource: 'payroll://2026' })) {
      if (round.kind === 'asks') {
        const [question] = round.questions
        const [name = ''] = Object.keys(question?.kind === 'form' ? question.form.properties : {})
        round.answer({ sure: { action: 'accept', content: { [name]: true } } })
      }
      if (round.kind === 'done') texts.push(round.result.contents[0])
    }
    expect(texts).toMatchObject([{ text: 'Review a.ts for speed.' }, { text: 'The payroll of 2026' }])
  })
})

describe('a pending round', () => {
  test('is plain JSON with all that is needed', async () => {
    const client = await connected()
    expect(await begun(client)).toEqual({
      version: 1,
      revision: '2026-07-28',
      method: 'tools/call',
      params: { name: 'order', arguments: { what: 'tea' } },
      inputRequests: {
        size: { method: 'elicitation/create', params: expect.objectContaining({ message: 'Which tea?' }) },
      },
      requestState: expect.stringMatching(/^rs1\./),
    })
  })

  test('is gone on from by another client, with answers and answerers', async () => {
    const pending = await begun(await connected())
    const other = await connected({ onElicit: () => sure })
    expect(textOf((await other.resume(pending, { size })) as CallToolResult)).toBe('A small tea with milk.')
  })

  test('without answers is put to the answerers', async () => {
    const pending = await begun(await connected())
    const other = await connected({ onElicit: ({ key }) => (key === 'size' ? size : sure) })
    expect(textOf((await other.resume(pending)) as CallToolResult)).toBe('A small tea with milk.')
  })

  test('is taken up a round at a time, and asks again before it sends anything', async () => {
    const { client, requests } = await scripted(() => done('ok'))
    const pending = {
      version: 1,
      revision: '2026-07-28',
      method: 'tools/call',
      params: { name: 'deploy' },
      inputRequests: (asks(['a']) as { inputRequests: never }).inputRequests,
      requestState: 'kept',
    } as const
    for await (const round of client.rounds(pending)) {
      if (round.kind !== 'asks') continue
      expect(requests).toEqual([])
      expect(round.pending).toEqual(pending)
      round.answer({ a: YES })
    }
    expect(requests[0]?.params).toMatchObject({ name: 'deploy', inputResponses: { a: YES }, requestState: 'kept' })
  })

  test('that only was put off is simply called again', async () => {
    const { client, requests } = await scripted(() => done('ok'))
    const base = { version: 1, revision: '2026-07-28', method: 'resources/read', params: { uri: 'a://b' } } as const
    await expect(client.resume({ ...base, requestState: 's' })).rejects.toMatchObject({ code: 'BAD_RESPONSE' })
    expect(requests[0]?.params).toMatchObject({ uri: 'a://b', requestState: 's' })
    await expect(client.resume({ ...base, requestState: 's' }, { a: YES })).rejects.toThrow('It has none.')
    expect(requests).toHaveLength(1)
  })

  test('that is damaged is refused before anything is sent', async () => {
    const { client, requests } = await scripted(() => done('ok'))
    const damaged = { ...(await begun(await connected())), revision: undefined } as unknown as PendingCall
    await expect(client.resume(damaged)).rejects.toMatchObject({ code: 'PENDING_INVALID' })
    await expect(client.rounds(damaged).next()).rejects.toMatchObject({ code: 'PENDING_INVALID' })
    expect(requests).toEqual([])
  })

  test('whose state was tampered with is refused by the server in its own words', async () => {
    const client = await connected()
    const pending = await begun(client)
    const tampered = { ...pending, requestState: `${pending.requestState?.slice(0, -4)}AAAA` }
    await expect(client.resume(tampered, { size })).rejects.toMatchObject({
      rpcCode: -32602,
      message: 'Invalid or expired requestState',
    })
  })
})

describe('across processes', () => {
  const children = new Set<Child>()
  afterEach(async () => {
    for (const child of children) await child.kill()
    children.clear()
  })

  function start(file: string, daysLater: number, env: Record<string, string>): Child {
    const later = new URL('./later.mjs', import.meta.url).href
    const child = new Child(process.execPath, ['--import', later, file], { ...env, DAYS_LATER: String(daysLater) })
    children.add(child)
    return child
  }

  async function serving(daysLater: number): Promise<{ url: string; child: Child }> {
    const day = 86_400
    const options = { ttl: 2 * day, maxAge: 10 * day }
    const child = start(SERVER, daysLater, { OPTIONS: JSON.stringify(options) })
    const [, url = ''] = await child.printed.match(/listening on (\S+)/)
    return { url, child }
  }

  async function resumed(url: string, pending: PendingCall, daysLater: number): Promise<unknown> {
    const file = fileURLToPath(new URL('./resume.mjs', import.meta.url))
    const env = { URL: url, PENDING: JSON.stringify(pending), ANSWERS: JSON.stringify({ sure }) }
    const child = start(file, daysLater, env)
    await child.ended
    return JSON.parse(child.printed.text)
  }

  test('a call begun in one goes on in another, at another server, a day later, while its time is not over', async () => {
    const today = await serving(0)
    const client = await connect(today.url, { can: ['elicitation.form'] })
    let pending: PendingCall | undefined
    for await (const round of client.rounds(order)) {
      if (round.kind !== 'asks') continue
      pending = round.pending
      if (round.questions[0]?.key === 'sure') break
      round.answer({ size })
    }
    await client.close()
    await today.child.kill()
    if (pending === undefined) throw new Error('It asked nothing.')

    const [tomorrow, tooLate] = await Promise.all([serving(1), serving(3)])
    const results = await Promise.all([resumed(tomorrow.url, pending, 1), resumed(tooLate.url, pending, 3)])
    expect(results).toMatchObject([
      { resultType: 'complete', content: [{ type: 'text', text: 'A small tea with milk.' }] },
      { code: 'PROTOCOL', rpcCode: -32602, message: 'Invalid or expired requestState' },
    ])
  })
})
