import { describe, expect, test, vi } from 'vitest'
import { accept, cancel, decline } from '../testing.ts'
import { ManualScheduler } from '../testing/manual-scheduler.ts'
import { Rounds } from '../testing/rounds.ts'
import { Cancel } from '../protocol/cancel.ts'
import { Declined } from './errors.ts'
import type { Io } from './io.ts'
import type { Outcome } from './carrier.ts'
import type { VisitOptions } from './question.ts'
import { scheduler } from './scheduler.ts'

const URL = 'https://example.com/connect'

describe('io.visit', () => {
  test('asks for consent to an address, and for nothing else', async () => {
    const outcome = await new Rounds().next((io) => io.visit('pay', 'Please pay.', URL, { done: () => true }))
    expect(outcome.kind === 'asks' && outcome.questions.get('pay')).toBe(
      `{"method":"elicitation/create","params":{"mode":"url","message":"Please pay.","url":"${URL}"}}`,
    )
  })

  test('settles with nothing once it was accepted and is done', async () => {
    const rounds = new Rounds()
    const handler = visiting({ done: () => true })
    await rounds.next(handler)
    const outcome = await rounds.next(handler, { pay: accept({ paid: true }) })
    expect(outcome).toEqual({ kind: 'done', value: undefined })
  })

  test('acceptance alone is not completion: it is asked again, says so, and that does not count', async () => {
    const rounds = new Rounds()
    let paid = false
    const handler = visiting({ done: () => paid })
    await rounds.next(handler)
    for (let round = 0; round < 5; round += 1) {
      const outcome = await rounds.next(handler, { pay: accept() })
      expect(outcome).toMatchObject({ kind: 'asks' })
      expect(messageOf(outcome)).toMatch(/^Please pay\.\n\nThis has not been completed yet\./)
    }
    paid = true
    expect(await rounds.next(handler, { pay: accept() })).toMatchObject({ kind: 'done' })
  })

  test('what is done before the user says so is not taken as consent', async () => {
    const rounds = new Rounds()
    const done = vi.fn<() => boolean>(() => true)
    await rounds.next(visiting({ done }))
    expect(await rounds.next(visiting({ done }))).toMatchObject({ kind: 'asks' })
    expect(done).not.toHaveBeenCalled()
  })

  test.each([decline(), cancel()])('answered with %o throws Declined', async (sent) => {
    const outcome = await new Rounds().next(visiting({ done: () => true }), { pay: sent })
    expect(outcome).toEqual({ kind: 'failed', error: new Declined('pay', sent.action as 'decline' | 'cancel') })
  })

  test('a round waits for a while, looking again after growing pauses, and no longer than waitMs', async () => {
    const manual = new ManualScheduler()
    const done = vi.fn<() => boolean>(() => false)
    const outcome = new Rounds().next(visiting({ done, waitMs: 3_000 }), { pay: accept() }, { scheduler: manual })
    const pauses: (number | undefined)[] = []
    for (let pause = await manual.wake(); pause !== undefined; pause = await manual.wake()) pauses.push(pause)
    expect(pauses).toEqual([100, 200, 400, 800, 1_000])
    expect(done).toHaveBeenCalledTimes(6)
    await manual.passTurn()
    expect(await outcome).toMatchObject({ kind: 'asks' })
  })

  test('a round goes on as soon as it is done', async () => {
    const manual = new ManualScheduler()
    let looks = 0
    const outcome = new Rounds().next(
      visiting({ done: async () => ++looks === 3 }),
      { pay: accept() },
      { scheduler: manual },
    )
    expect([await manual.wake(), await manual.wake(), await manual.wake()]).toEqual([100, 200, undefined])
    expect(await outcome).toMatchObject({ kind: 'done' })
  })

  test('rule 1: a pass that ends while it waits leaves no timer and no listener behind', async () => {
    const cancelling = new Cancel()
    let signal: AbortSignal | undefined
    const done = vi.fn<VisitOptions['done']>((given) => {
      ;({ signal } = given)
      return false
    })
    const sleeps: Promise<void>[] = []
    const sleep = (ms: number, until: AbortSignal): Promise<void> => {
      const slept = scheduler.sleep(ms * 1_000, until)
      sleeps.push(slept)
      void Promise.resolve().then(() => cancelling.cancel())
      return slept
    }
    const input = { cancel: cancelling, scheduler: { ...scheduler, sleep } }
    const outcome = await new Rounds().next(visiting({ done }), { pay: accept() }, input)
    expect(outcome).toEqual({ kind: 'cancelled' })
    // It would be a minute and a half otherwise.
    await Promise.all(sleeps)
    expect(sleeps).toHaveLength(1)
    expect(signal?.aborted).toBe(true)
    expect(done).toHaveBeenCalledOnce()
  })

  test('a sleep that is slept out leaves no listener on its signal', async () => {
    const { signal } = new AbortController()
    const removed = vi.spyOn(signal, 'removeEventListener')
    const added = vi.spyOn(signal, 'addEventListener')
    await scheduler.sleep(1, signal)
    expect(added).toHaveBeenCalledOnce()
    expect(removed.mock.calls[0]).toEqual(added.mock.calls[0])
  })

  test('the token is the same for the page and for done, on every pass, and another one for another key or flow', async () => {
    const tokens: string[] = []
    const handler = (io: Io, key = 'pay'): Promise<void> =>
      io.visit(
        key,
        'Please pay.',
        (token) => {
          tokens.push(token)
          return `${URL}?token=${token}`
        },
        { done: ({ token }) => tokens.push(token) > 0 },
      )
    const rounds = new Rounds()
    await rounds.next(handler)
    await rounds.next(handler, { pay: accept() })
    expect(new Set(tokens).size).toBe(1)
    expect(tokens).toHaveLength(3)
    expect(tokens[0]).toMatch(/^[\w-]{22}$/)
    await new Rounds().next((io) => handler(io, 'other'))
    const flow = { id: 'other', startedAt: 0, round: 0, revision: '2026-07-28', declared: () => true }
    await new Rounds().next(handler, undefined, { flow })
    expect(new Set(tokens).size).toBe(3)
  })

  test('what done throws fails the call', async () => {
    const error = new Error('The payment service is down.')
    const outcome = await new Rounds().next(visiting({ done: () => Promise.reject(error) }), { pay: accept() })
    expect(outcome).toEqual({ kind: 'failed', error, key: 'pay' })
  })

  test.each([
    { url: 'example.com/connect', why: 'its url must be an http or https URL' },
    { url: 'javascript:alert(1)', why: 'its url must be an http or https URL' },
    { url: 'file:///etc/passwd', why: 'its url must be an http or https URL' },
    { url: 'https://example.com/a b', why: 'its url must be an http or https URL' },
    { url: '', why: 'its url must be an http or https URL' },
    { url: undefined as unknown as string, why: 'its url must be an http or https URL' },
    { url: 'https://ada:secret@example.com', why: 'its url must not contain a user name or a password' },
    { url: 'https://ada@example.com', why: 'its url must not contain a user name or a password' },
  ])('refuses the address $url', async ({ url, why }) => {
    const outcome = await new Rounds().next((io) => io.visit('pay', 'Please pay.', url, { done: () => true }))
    expect(outcome).toMatchObject({
      error: { code: 'QUESTION_INVALID', message: `The question "pay" cannot be asked: ${why}.` },
    })
  })

  test.each([undefined, {}])('refuses to be asked with %o, which cannot tell whether it is done', async (options) => {
    const outcome = await new Rounds().next((io) => io.visit('pay', 'Please pay.', URL, options as VisitOptions))
    expect(outcome).toMatchObject({
      error: { code: 'QUESTION_INVALID', message: expect.stringContaining('it needs `done`') },
    })
  })
})

function visiting(options: VisitOptions): (io: Io) => Promise<void> {
  return (io) => io.visit('pay', 'Please pay.', URL, options)
}

function messageOf(outcome: Outcome): string {
  const text = outcome.kind === 'asks' ? outcome.questions.get('pay') : undefined
  return (JSON.parse(text ?? '{"params":{}}') as { params: { message: string } }).params.message
}
