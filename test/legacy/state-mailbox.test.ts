// What comes of an answer that carries its call: done once, left in a mailbox, and found there by whichever instance.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqlite } from 'mcp-rally/sqlite'
import type { Rally } from 'mcp-rally'
import { MemoryOnceStore } from 'mcp-rally'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { MemoryMailbox } from '../../src/store/memory/mailbox.ts'
import { accepted, answerTo, fetchSegment, readSegment, openCarrying } from './carried.ts'
import { askedBy, Carrying, useCarrying } from './carrying-app.ts'
import type { Ask, RawSession } from './raw.ts'
import { Events, hosts, textOf } from './raw.ts'

/** On a machine that has other things to do. */
const SOON = { timeout: 10_000 }

function versioned(app: Rally, version: string): void {
  app.tool('versioned', { version, input: z.object({ steps: z.boolean() }) }, async ({ steps }, io) => {
    if (steps) await io.step('one', () => version)
    return (await io.confirm('sure', 'Sure?')) ? `Done by ${version}.` : 'No.'
  })
}

test.each([{}, { leave: () => {}, after: () => {} }, 7])(
  'a mailbox option that is not a Mailbox is an error: %j',
  (mailbox) => {
    expect(() => new Carrying().app({ legacy: { mailbox } })).toThrow(
      '`legacy.mailbox` must be the mailbox of a store, or one with the functions leave, after, watch, got ',
    )
  },
)

describe.each(hosts)('$name', (host) => {
  const on = useCarrying(host)

  test('the same answer twice does the work once', async () => {
    const { question, lastId } = await askedBy(on.session, 'count', { by: 'B' })
    const response = answerTo(question, accepted({ confirm: true }))
    const statuses = await Promise.all([on.session.post(response), on.session.post(response)])
    statuses.push(await on.session.post(response))
    expect(statuses.map(({ status }) => status)).toEqual([202, 202, 202])
    expect(textOf((await fetchSegment(on.session, lastId)).last)).toBe('Counted 2.')
    expect(on.made.effects).toEqual(['B before', 'B after'])
  })

  test('an answer that differs from the one that resumed the call changes nothing', async () => {
    const { question, lastId } = await askedBy(on.session, 'count', { by: 'C' })
    await on.session.post(answerTo(question, accepted({ confirm: true })))
    await on.session.post(answerTo(question, accepted({ confirm: false })))
    expect(textOf((await fetchSegment(on.session, lastId)).last)).toBe('Counted 2.')
  })

  test('with single-use states an answer that differs is refused, and the same one is not', async () => {
    const mailbox = new MemoryMailbox()
    // Forgets at once, so that only the single use is left to tell.
    const forgetful = {
      leave: async () => true,
      after: mailbox.after.bind(mailbox),
      watch: mailbox.watch.bind(mailbox),
    }
    const strict = on.made.app({ once: new MemoryOnceStore(), legacy: { mailbox: forgetful } })
    const opened = await host.open(strict)
    const carrying = await openCarrying(opened.ask)
    const { last } = await readSegment(await carrying.call('count', { by: 'D' }))
    const statusOf = async (result: object): Promise<number> => (await carrying.post(answerTo(last, result))).status
    expect(await statusOf(accepted({ confirm: true }))).toBe(202)
    expect(await statusOf(accepted({ confirm: true }))).toBe(202)
    expect(await statusOf(accepted({ confirm: false }))).toBe(400)
    expect(on.made.effects).toEqual(['D before', 'D after'])
    await opened.close()
  })

  test('the records of single use count for their caller, and have its limit', async () => {
    const once = new MemoryOnceStore()
    const opened = await host.open(on.made.app({ once, limits: { maxRecordBytes: 320 } }))
    const carrying = await openCarrying(opened.ask)
    const answered = async (by: string): Promise<Response> => {
      const { last } = await readSegment(await carrying.call('count', { by }))
      return carrying.post(answerTo(last, accepted({ confirm: true })))
    }
    expect((await answered('E')).status).toBe(202)
    expect(once.bytes('')).toBeGreaterThan(34)
    const refused = await answered('F')
    expect(refused.status).not.toBe(202)
    expect(await refused.text()).toContain('may store 320 (limits.maxRecordBytes)')
    expect(on.made.effects).toEqual(['E before', 'E after', 'F before'])
    await opened.close()
  })

  test.each([
    [
      'response',
      'tell_much',
      { error: { code: -32603, message: expect.stringContaining('must be at most 3000 bytes') } },
    ],
    [
      'question',
      'ask_much',
      { result: { isError: true, content: [{ text: expect.stringContaining('must be at most 3000 bytes') }] } },
    ],
  ])('a %s that the mailbox of the process cannot hold is told of', async (_what, tool, told) => {
    const opened = await host.open(
      on.made.app({ legacy: { mailbox: new MemoryMailbox({ maxBytes: 3_000, share: 1 }) } }),
    )
    const carrying = await openCarrying(opened.ask)
    const { last, lastId } = await readSegment(await carrying.call(tool))
    expect((await carrying.post(answerTo(last, accepted({ confirm: true })))).status).toBe(202)
    expect((await fetchSegment(carrying, lastId)).last).toMatchObject({ id: 1, ...told })
    await opened.close()
  })

  test('an answer is a 503 if the result cannot be stored, and the call resumes when it is sent again', async () => {
    const inner = new MemoryMailbox()
    let isDown = true
    const flaky = {
      leave: (...args: Parameters<MemoryMailbox['leave']>) =>
        isDown ? Promise.reject(new Error('The store is down.')) : inner.leave(...args),
      after: inner.after.bind(inner),
      watch: inner.watch.bind(inner),
    }
    const opened = await host.open(on.made.app({ legacy: { mailbox: flaky } }))
    const carrying = await openCarrying(opened.ask)
    for (const isLast of [false, true]) {
      isDown = true
      const { last, lastId } = await readSegment(await carrying.call(isLast ? 'workspace' : 'survey'))
      const response = answerTo(last, isLast ? { roots: [{ uri: 'file:///one' }] } : accepted({ name: 'Ada' }))
      expect((await carrying.post(response)).status).toBe(503)
      isDown = false
      expect((await carrying.post(response)).status).toBe(202)
      const next = (await fetchSegment(carrying, lastId)).last
      expect(isLast ? textOf(next) : next?.params?.['message']).toBe(isLast ? 'file:///one' : 'How old are you, Ada?')
    }
    await opened.close()
  })

  test('an answer resumes the call even if the asking instance has not yet learned that its question was stored', async () => {
    const inner = new MemoryMailbox()
    let known: Promise<void> | undefined
    const slow = {
      leave: async (...args: Parameters<MemoryMailbox['leave']>) => {
        const isFirst = await inner.leave(...args)
        await known
        return isFirst
      },
      after: inner.after.bind(inner),
      watch: inner.watch.bind(inner),
    }
    const opened = await host.open(on.made.app({ legacy: { mailbox: slow } }))
    const carrying = await openCarrying(opened.ask)
    const name = await readSegment(await carrying.call('survey'))
    known = on.made.gate
    const answers = [carrying.post(answerTo(name.last, accepted({ name: 'Ada' })))]
    const age = await fetchSegment(carrying, name.lastId)
    answers.push(carrying.post(answerTo(age.last, accepted({ age: 36 }))))
    expect(textOf((await fetchSegment(carrying, age.lastId)).last)).toBe('Ada is 36.')
    on.made.open()
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([202, 202])
    await opened.close()
  })

  test('a session is remembered while a call resumes, so that later messages find the call', async () => {
    const inner = new MemoryMailbox()
    let looks = 0
    const slow = {
      leave: inner.leave.bind(inner),
      after: async (...args: Parameters<MemoryMailbox['after']>) => {
        looks += 1
        await on.made.gate
        return inner.after(...args)
      },
      watch: inner.watch.bind(inner),
    }
    const opened = await host.open(on.made.app({ legacy: { mailbox: slow } }))
    const carrying = await openCarrying(opened.ask)
    const { last } = await readSegment(await carrying.call('hold'))
    const answered = carrying.post(answerTo(last, accepted({ confirm: true })))
    await expect.poll(() => looks, SOON).toBe(1)
    // It comes and goes, and nothing of the session would have to be remembered for it.
    expect((await carrying.json('ping')).result).toEqual({})
    on.made.open()
    await expect.poll(() => on.made.effects, SOON).toEqual(['holding'])
    await carrying.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
    await expect.poll(() => on.made.effects, SOON).toEqual(['holding', 'stopped'])
    expect((await answered).status).toBe(202)
    await opened.close()
  })

  describe('on another instance', () => {
    let mailbox: MemoryMailbox
    let here: RawSession
    const closes: (() => Promise<void>)[] = []

    const another = async (options: object = {}): Promise<{ ask: Ask; app: Rally }> => {
      const instance = on.made.app({ legacy: { mailbox }, ...options })
      const opened = await host.open(instance)
      closes.push(opened.close)
      return { ask: opened.ask, app: instance }
    }
    beforeEach(async () => {
      mailbox = new MemoryMailbox()
      const first = await another()
      versioned(first.app, '1')
      here = await openCarrying(first.ask)
    })
    afterEach(async () => {
      for (const each of closes.splice(0)) await each()
    })

    test('what follows an answer is found in the store that the instances share', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'rally-store-'))
      const onStore = async (): Promise<Ask> => {
        const store = sqlite(join(folder, 'fleet.db'))
        const instance = await another({ legacy: {}, store })
        closes.push(() => store.close())
        return instance.ask
      }
      const own = await openCarrying(await onStore())
      const { last, lastId } = await readSegment(await own.call('deploy', { env: 'x' }))
      await own.at(await onStore()).post(answerTo(last, accepted({ confirm: true })))
      expect(textOf((await fetchSegment(own.at(await onStore()), lastId)).last)).toMatch(/^Deployed/)
      closes.push(() => rm(folder, { recursive: true }))
    })

    test('answers alone carry over to another version of the tool', async () => {
      const { last, lastId } = await readSegment(await here.call('versioned', { steps: false }))
      const second = await another()
      versioned(second.app, '2')
      const there = here.at(second.ask)
      await there.post(answerTo(last, accepted({ confirm: true })))
      expect(textOf((await fetchSegment(there, lastId)).last)).toBe('Done by 2.')
    })

    test('a call that has done steps does not go on in another version of the tool, and says so', async () => {
      const { last, lastId } = await readSegment(await here.call('versioned', { steps: true }))
      const second = await another()
      versioned(second.app, '2')
      const there = here.at(second.ask)
      await there.post(answerTo(last, accepted({ confirm: true })))
      const { last: told } = await fetchSegment(there, lastId)
      expect(told?.error).toMatchObject({ code: -32602, data: { code: 'VERSION_CHANGED' } })
    })

    test('a tool that does not exist is an error', async () => {
      const { last, lastId } = await readSegment(await here.call('versioned', { steps: true }))
      const there = here.at((await another()).ask)
      await there.post(answerTo(last, accepted({ confirm: true })))
      expect((await fetchSegment(there, lastId)).last?.error).toMatchObject({
        message: 'Unknown tool: versioned',
        data: { code: 'VERSION_CHANGED' },
      })
    })

    test('the least level to be logged is the one that the session had where it asked', async () => {
      // Only this instance knows of it beside the state.
      await here.json('logging/setLevel', { level: 'error' })
      const { last, lastId } = await readSegment(await here.call('count', { by: 'F' }))
      const there = here.at((await another()).ask)
      await there.post(answerTo(last, accepted({ confirm: true })))
      expect((await fetchSegment(there, lastId)).messages).toMatchObject([
        { result: { content: [{ text: 'Counted 2.' }] } },
      ])
    })

    test('who waits is sent away when the instance goes down, and has the rest elsewhere', async () => {
      const { last, lastId } = await readSegment(await here.call('deploy', { env: 'x' }))
      const [second, third] = [await another(), await another()]
      const events = new Events(await here.at(second.ask).get({ 'Last-Event-ID': lastId }))
      await events.next()
      second.app.drain()
      expect(await events.rest()).toEqual([])
      expect((await here.at(second.ask).get({ 'Last-Event-ID': lastId })).status).toBe(503)
      const there = here.at(third.ask)
      await there.post(answerTo(last, accepted({ confirm: true })))
      expect(textOf((await fetchSegment(there, events.lastId)).last)).toMatch(/^Deployed/)
    })

    test('a call that is interrupted after it resumed says so', async () => {
      const { last, lastId } = await readSegment(await here.call('hold'))
      const second = await another()
      const answered = here.at(second.ask).post(answerTo(last, accepted({ confirm: true })))
      await expect.poll(() => on.made.effects, SOON).toEqual(['holding'])
      second.app.interrupt()
      expect((await answered).status).toBe(202)
      expect(textOf((await fetchSegment(here, lastId)).last)).toContain('the server shut down')
    })

    test('of two that wait for the same the one that came first is sent away', async () => {
      const { last, lastId } = await readSegment(await here.call('deploy', { env: 'x' }))
      const first = new Events(await here.get({ 'Last-Event-ID': lastId }))
      await first.next()
      const second = fetchSegment(here, lastId)
      expect(await first.rest()).toEqual([])
      await here.post(answerTo(last, accepted({ confirm: true })))
      expect(textOf((await second).last)).toMatch(/^Deployed/)
    })
  })
})
