// Callers that try to use up what they share with others.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Caller, flood } from './caller.ts'
import { Target } from './target.ts'

const ask = (id: number): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'ask', arguments: {} } })

/** Calls a tool that asks, in sessions of this caller, and leaves all questions open. */
async function leaveOpen(attacker: Caller, calls: number): Promise<string[]> {
  const texts: string[] = []
  let headers: Record<string, string> = {}
  for (let i = 0; i < calls; i += 200) {
    headers = await attacker.begin('2025-11-25', { elicitation: {} })
    await flood(Math.min(200, calls), 50, async (id) => {
      texts.push((await attacker.post(ask(id), headers, 'elicitation/create')).text)
    })
  }
  return texts
}

test('one caller that leaves its questions open does not keep others from being asked', async () => {
  const target = await Target.start({}, { limits: { maxStreams: 400 } })
  const texts = await leaveOpen(new Caller(target, 'ann'), 200)
  expect(texts.filter((text) => text.includes('elicitation/create'))).toHaveLength(100)
  expect(texts.at(-1)).toContain(
    'Too many event streams: one caller may use 100 of 400 (limits.maxStreams, limits.share), and this one would use more. Close',
  )
  const bob = new Caller(target, 'bob')
  const headers = await bob.begin('2025-11-25', { elicitation: {} })
  expect((await bob.post(ask(1), headers, 'elicitation/create')).text).toContain('Sure?')
})

test('many callers that leave their questions open make room for one that has none', async () => {
  const target = await Target.start({}, { limits: { maxStreams: 200 } })
  for (const principal of ['ann', 'cyd', 'dan', 'eve']) await leaveOpen(new Caller(target, principal), 50)
  const bob = new Caller(target, 'bob')
  const headers = await bob.begin('2025-11-25', { elicitation: {} })
  expect((await bob.post(ask(1), headers, 'elicitation/create')).text).toContain('Sure?')
})

test('one caller with slow calls gets a 503 past half of maxInFlight, and others are served', async () => {
  const target = await Target.start({ maxInFlight: 20 }, {})
  const attacker = new Caller(target, 'ann')
  const slow = Array.from({ length: 30 }, () => attacker.call('tools/call', { name: 'wait', arguments: {} }))
  for (const each of slow) each.catch(() => {})
  const { status, text } = await Promise.any(slow)
  expect([status, text]).toEqual([
    503,
    expect.stringContaining('one caller may use half of 20 requests at a time (`maxInFlight`)'),
  ])
  const { text: greeting } = await new Caller(target, 'bob').call('tools/call', { name: 'greet' })
  expect(greeting).toContain('Hello')
})

test('one caller whose slow calls have large bodies gets a 503, and others can send large bodies', async () => {
  const target = await Target.start({ maxBufferedBytes: 400_000 }, {})
  const attacker = new Caller(target, 'ann')
  const padding = 'x'.repeat(90_000)
  const slow = Array.from({ length: 3 }, () => attacker.call('tools/call', { name: 'wait', arguments: { padding } }))
  for (const each of slow) each.catch(() => {})
  const { status, text } = await Promise.any(slow)
  expect([status, text]).toEqual([503, expect.stringContaining('may take half of 400000 bytes (`maxBufferedBytes`)')])
  const sent = { name: 'large', arguments: { bytes: 5, padding } }
  const { text: received } = await new Caller(target, 'bob').call('tools/call', sent)
  expect(received).toContain('xxxxx')
})

const CARRIES = { elicitation: {}, state: { scopes: ['request'] } }

interface AnsweredCall {
  readonly status: number
  readonly text: string
  /** Fetches what follows, from this instance or another one. */
  readonly fetchResult: (from?: Caller) => Promise<string>
}

/** A call whose question is answered. What follows waits in the mailbox. */
async function answeredCall(caller: Caller): Promise<AnsweredCall> {
  const headers = await caller.begin('2025-11-25', CARRIES)
  const { text } = await caller.post(ask(1), headers)
  const [, eventId = ''] = /^id: (.*)\nretry.*\nevent: message$/m.exec(text) ?? []
  const [, data = ''] = /^data: (\{.*)$/m.exec(text) ?? []
  const question = JSON.parse(data) as { id: string; params: { _meta: object } }
  const result = { action: 'accept', content: { confirm: true }, _meta: question.params._meta }
  const answered = await caller.post(JSON.stringify({ jsonrpc: '2.0', id: question.id, result }), headers)
  const fetchResult = async (from = caller): Promise<string> =>
    (await from.post(undefined, { ...headers, 'Last-Event-ID': eventId })).text
  return { status: answered.status, text: answered.text, fetchResult }
}

const MAILBOX_BYTES = 400_000

/** Stores 6 000 entries of more than 200 bytes: three times what the mailbox holds. */
async function fillMailbox(attacker: Caller): Promise<void> {
  const headers = await attacker.begin('2025-03-26', CARRIES)
  await flood(60, 4, async (i) => {
    const cancelled = Array.from({ length: 100 }, (_, id) => ({
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: `r${i} ${id}` },
    }))
    expect((await attacker.post(JSON.stringify(cancelled), headers)).status).toBe(202)
  })
}

test('one caller does not flush the finished result of another out of the mailbox', async () => {
  const target = await Target.start({}, { limits: { maxWaitingBytes: MAILBOX_BYTES } })
  const { status, fetchResult } = await answeredCall(new Caller(target, 'bob'))
  expect(status).toBe(202)
  await fillMailbox(new Caller(target, 'ann'))
  expect(await fetchResult()).toContain('Yes, sure.')
})

test('one caller that fills its share of a shared mailbox on two instances is refused, and another is not', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rally-attack-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const options = { file: join(folder, 'tasks.db'), limits: { maxWaitingBytes: MAILBOX_BYTES } }
  const [one, two] = await Promise.all([Target.start({}, options), Target.start({}, options)])
  for (const target of [one, two]) {
    const attacker = new Caller(target, 'ann')
    await fillMailbox(attacker)
    const { status, text } = await answeredCall(attacker)
    expect(status).toBe(429)
    expect(text).toContain('one caller may store 400000 bytes (limits.maxWaitingBytes')
  }
  const { status, fetchResult } = await answeredCall(new Caller(one, 'bob'))
  expect(status).toBe(202)
  expect(await fetchResult(new Caller(two, 'bob'))).toContain('Yes, sure.')
})

async function create(caller: Caller): Promise<string> {
  return (await caller.call('tools/call', { name: 'work' })).text
}

test('one caller uses its tasks up on two instances with one store, and another has its own', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rally-attack-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const options = { file: join(folder, 'tasks.db'), limits: { maxOpenTasks: 50 } }
  const [one, two] = await Promise.all([Target.start({}, options), Target.start({}, options)])
  const [first, second] = [new Caller(one, 'ann'), new Caller(two, 'ann')]
  const texts: string[] = []
  await flood(60, 4, async () => void texts.push(await create(first)))
  expect(texts.filter((text) => text.includes('"taskId"'))).toHaveLength(50)
  expect(await create(second)).toContain(
    'Too many open tasks: one caller may have 50 (limits.maxOpenTasks is 50). Wait until some have ended, or cancel them.',
  )
  expect(await create(new Caller(two, 'bob'))).toContain('"taskId"')
  // A task that has ended makes room, on both.
  const [, taskId = ''] = /"taskId":"(\w+)"/.exec(texts[0] ?? '') ?? []
  await second.call('tasks/cancel', { taskId, name: taskId })
  await expect.poll(() => create(second), { timeout: 5_000 }).toContain('"taskId"')
})
