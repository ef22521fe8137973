// The progress of a task in the sessions of older revisions, with the token of the call.
import { rally } from 'mcp-rally'
import { MemoryStore } from 'mcp-rally'
import { expect, onTestFinished, describe, test } from 'vitest'
import { gate } from '../dialects/gate.ts'
import type { RawHost } from '../legacy/raw.ts'
import { Events, hosts, RawSession } from '../legacy/raw.ts'

interface Copying {
  readonly session: RawSession
  readonly taskId: string
  /** Reports this number. */
  readonly report: (number: number) => Promise<void>
  /** Reports the last number, and ends the task in the same moment. */
  readonly end: (number: number) => void
}

/** A task that reports what the test tells it to. Its call had the progress token "call". */
async function copying(
  { open }: RawHost,
  revision: string,
  beforeTheCall?: (session: RawSession) => Promise<void>,
): Promise<Copying> {
  const app = rally({
    name: 'copier',
    version: '1.0.0',
    store: new MemoryStore(),
    revisions: ['2026-06-XX', '2026-02-03-draft'],
  })
  const begun = gate()
  const ended = gate()
  let progress: ((number: number) => void) | undefined
  app.tool('copy', { task: 'always' }, async (_args, io) => {
    await io.step('all', async (step) => {
      progress = (number) => step.progress(number, 10)
      begun.open()
      await ended.opened
    })
    return 'Copied.'
  })
  const { ask, close } = await open(app)
  onTestFinished(close)
  const session = await RawSession.open(ask, { revision })
  await beforeTheCall?.(session)
  const params = { name: 'copy', arguments: {}, task: {}, _meta: { progressToken: 'call' } }
  const created = await session.json('tools/call', params)
  const { taskId } = (created.result as { task: { taskId: string } }).task
  await begun.opened
  const report = async (number: number): Promise<void> => {
    progress?.(number)
    // It is written every 100 ms at most.
    await expect
      .poll(async () => (await session.json('tasks/get', { taskId })).result)
      .toMatchObject({ statusMessage: `${number} of 10` })
  }
  const end = (number: number): void => {
    progress?.(number)
    ended.open()
  }
  return { session, taskId, report, end }
}

/** The next report on the stream. */
async function reported(events: Events): Promise<unknown> {
  for (;;) {
    const message = await events.message()
    if (message === undefined) throw new Error('The stream has ended.')
    if (message.method === 'notifications/progress') return message.params
  }
}

async function listen(session: RawSession): Promise<Events> {
  const response = await session.get()
  const events = new Events(response)
  onTestFinished(() => events.lose())
  return events
}

const withToken = (progress: number): object => ({ progressToken: 'call', progress, total: 10 })

describe.each(hosts)('over $name', (host) => {
  describe.each(['2025-11-25', '2026-06-XX', '2026-02-03-draft'])('a session of %s', (revision) => {
    test('has the progress on its stream, also if it was opened after a report, or lost for a while', async () => {
      const { session, report } = await copying(host, revision)
      await report(1)
      const stream = await listen(session)
      await report(2)
      expect(await reported(stream)).toEqual(withToken(2))
      await stream.lose()
      await report(3)
      const another = await listen(session)
      await report(4)
      expect(await reported(another)).toEqual(withToken(4))
    })

    test('has the last number, which was reported in the moment of the end', async () => {
      const { session, taskId, report, end } = await copying(host, revision)
      const stream = await listen(session)
      await report(1)
      expect(await reported(stream)).toEqual(withToken(1))
      end(10)
      expect(await reported(stream)).toEqual(withToken(10))
      const { result } = await session.json('tasks/get', { taskId })
      expect(result).toMatchObject({ _meta: { 'com.mcp-rally/progress': { progress: 10, total: 10 } } })
    })

    test('has it before the result of tasks/result', async () => {
      const { session, taskId, end } = await copying(host, revision)
      const response = session.request('tasks/result', { taskId, _meta: { progressToken: 'wait' } })
      const events = new Events(await response)
      end(10)
      expect(await reported(events)).toEqual({ progressToken: 'wait', progress: 10, total: 10 })
      expect((await events.message())?.result).toMatchObject({ content: [{ text: 'Copied.' }] })
    })

    test('reads it with the task', async () => {
      const { session, taskId, report } = await copying(host, revision)
      expect((await session.json('tasks/get', { taskId })).result).not.toHaveProperty('_meta')
      await report(4)
      const { result } = await session.json('tasks/get', { taskId })
      expect(result).toMatchObject({ _meta: { 'com.mcp-rally/progress': { progress: 4, total: 10 } } })
    })

    test('has it on the stream of tasks/result, without a stream of its own', async () => {
      const { session, taskId, report } = await copying(host, revision)
      await report(1)
      const events = new Events(await session.request('tasks/result', { taskId }))
      expect(await reported(events)).toEqual(withToken(1))
      await report(2)
      expect(await reported(events)).toEqual(withToken(2))
    })
  })
})
