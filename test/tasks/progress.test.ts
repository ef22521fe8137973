// The progress of a task as numbers: on the wire, in the client, in older sessions.
import { connect } from 'mcp-rally/client'
import type { ClientOptions, ProgressUpdate } from 'mcp-rally/client'
import { serve } from 'mcp-rally/node'
import { MemoryStore, rally } from 'mcp-rally'
import type { Rally } from 'mcp-rally'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Gate } from '../../src/testing/manual-scheduler.ts'
import { gate } from '../../src/testing/manual-scheduler.ts'
import { readMessage, StatusMessage } from '../../src/tasks/status-message.ts'
import { resultOf } from '../wire/messages.ts'
import { Caller, task } from './caller.ts'
import { LEASE_MS, opened } from './office.ts'

const META = 'com.mcp-rally/progress'

/** What is stored of a report. */
function stored(...report: [number, number?, string?]): string | undefined {
  const status = new StatusMessage(undefined, () => {})
  status.progress(...report)
  status.stop()
  return status.take().message
}

/** Copies ten files, and waits before the fifth until it may go on. */
function copies(app: Rally, fifth: Gate<void>): void {
  app.tool('copy', { task: 'optional' }, async (_args, io) => {
    await io.step('first', ({ progress }) => progress(4, 10, 'Copying.'))
    await io.step('rest', async ({ progress }) => {
      await fifth.promise
      progress(9, 10)
    })
    return 'Copied.'
  })
}

describe('the progress of a task', () => {
  test('is in its _meta, beside the message, also when it has ended', async () => {
    const fifth = gate()
    const { caller } = opened((app) => copies(app, fifth))
    const id = await caller.begin('copy')
    await caller.until(id, ({ statusMessage }) => statusMessage === 'Copying.')
    const running = resultOf(await caller.send(task('tasks/get', id)))
    expect(running['_meta']).toMatchObject({ [META]: { progress: 4, total: 10, message: 'Copying.' } })
    fifth.open()
    await caller.ended(id)
    const ended = resultOf(await caller.send(task('tasks/get', id)))
    expect(ended['_meta']).toMatchObject({ [META]: { progress: 9, total: 10 } })
    expect(ended['statusMessage']).toBe('9 of 10')
  })

  test('does not fall back when another worker has the task', async () => {
    const { caller, office, instance } = opened((app) => {
      app.tool('copy', { task: 'always' }, async (_args, io) => {
        await io.step('all', async ({ progress }) => {
          progress(6, 10)
          await new Promise(() => {})
        })
        return 'Copied.'
      })
    })
    office.skipWaits()
    const id = await caller.begin('copy')
    await caller.until(id, ({ statusMessage }) => statusMessage === '6 of 10')
    instance.view.kill()
    const other = office.instance((app) =>
      app.tool('copy', { task: 'always' }, async (_args, io) => {
        await io.step('all', async ({ progress }) => {
          progress(2, 10)
          await new Promise((resolve) => void setTimeout(resolve, 150))
          progress(7, 10)
        })
        return 'Copied.'
      }),
    )
    office.elapse(LEASE_MS + 1)
    const seen = new Set<string | undefined>()
    await new Caller(office, other.app).until(id, ({ status, statusMessage }) => {
      seen.add(statusMessage)
      return status === 'completed'
    })
    expect([...seen]).not.toContain('2 of 10')
  })

  test('is the numbers of the last report, however odd, and any message', () => {
    expect(readMessage(stored(1.5e-7, 1e21, '3/4\u001f'))).toEqual({
      message: '3/4\u001f',
      progress: { progress: 1.5e-7, total: 1e21, message: '3/4\u001f' },
    })
    expect(readMessage(stored(-2))).toEqual({ message: '-2', progress: { progress: -2 } })
    expect(readMessage(stored(Number.NaN, 10))).toEqual({})
    expect(readMessage('An error.')).toEqual({ message: 'An error.' })
  })
})

describe.each<[string, ClientOptions]>([
  ['2026-07-28', {}],
  ['2025-11-25', { revision: '2025-11-25' }],
  ['2026-06-XX', { revision: '2026-06-XX' }],
  ['2026-02-03-draft', { revision: '2026-02-03-draft' }],
])('a client of %s', (_, options) => {
  test('is told the numbers by onProgress of callTool, of the task as of a plain call', async () => {
    const fifth = gate()
    const app = rally({
      name: 'copier',
      version: '1.0.0',
      store: new MemoryStore(),
      tasks: { pollMs: 20 },
      revisions: ['2026-06-XX', '2026-02-03-draft'],
    })
    copies(app, fifth)
    const { url, close } = await serve(app, { port: 0, handleSignals: false })
    onTestFinished(close)
    const client = await connect(url, options)
    onTestFinished(() => client.close())
    const told: ProgressUpdate[] = []
    const onProgress = (progress: ProgressUpdate): void => {
      told.push(progress)
      if (progress.progress === 4) fifth.open()
    }
    const started = await client.startTool('copy', {}, { onProgress })
    if (started.kind !== 'task') throw new Error('It should be a task.')
    expect(await started.task.result({ onProgress })).toMatchObject({ content: [{ text: 'Copied.' }] })
    expect(told[0]).toEqual({ progress: 4, total: 10, message: 'Copying.' })
    expect(told.map(({ progress }) => progress)).toEqual([4, 9])
  })

  test('is told each number once, whatever the message', async () => {
    const app = rally({
      name: 'copier',
      version: '1.0.0',
      store: new MemoryStore(),
      tasks: { pollMs: 20 },
      revisions: ['2026-06-XX', '2026-02-03-draft'],
    })
    const [first, second, third] = [gate(), gate(), gate()]
    app.tool('copy', { task: 'optional' }, async (_args, io) => {
      await io.step('all', async ({ progress }) => {
        await first.promise
        progress(3, 10, 'Three.')
        await second.promise
        progress(3, 10, 'Still three.')
        await third.promise
        progress(5, 10)
      })
      return 'Copied.'
    })
    const { url, close } = await serve(app, { port: 0, handleSignals: false })
    onTestFinished(close)
    const client = await connect(url, options)
    onTestFinished(() => client.close())
    const started = await client.startTool('copy')
    if (started.kind !== 'task') throw new Error('It should be a task.')
    const { task: handle } = started
    const told: number[] = []
    const result = handle.result({ onProgress: ({ progress }) => void told.push(progress) })
    for (const [open, message] of [
      [first, 'Three.'],
      [second, 'Still three.'],
    ] as const) {
      open.open()
      await expect.poll(async () => (await handle.status()).message).toBe(message)
    }
    third.open()
    await result
    expect(told).toEqual([3, 5])
  })
})
