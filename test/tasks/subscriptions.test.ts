// notifications/tasks on subscriptions/listen: one's own tasks, as they stand now and whenever they change.
import type { Rally } from 'mcp-rally'
import { serve } from 'mcp-rally/node'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { Cancel } from '../../src/protocol/cancel.ts'
import type { JSONRPCNotification, JSONRPCResponse } from '../../src/protocol/messages.ts'
import { META_CAPABILITIES, META_SUBSCRIPTION, TASKS_EXTENSION } from '../../src/protocol/revisions/2026-07-28.ts'
import { gate, microtasks } from '../../src/testing/manual-scheduler.ts'
import { eventsOf } from '../wire/hosts.ts'
import { accept, callerNamed, EVERYTHING, headersOf, request } from '../wire/messages.ts'
import type { Task } from './caller.ts'
import { Caller, WITH_TASKS } from './caller.ts'
import { Office, opened } from './office.ts'
import { checkMessage } from './spec.ts'

const YES = accept({ confirm: true })
const UNKNOWN = 'x'.repeat(43)

function asking(app: Rally): void {
  app.tool('ask', { task: 'always' }, async (_args, io) => `${await io.confirm('sure', 'Sure?')}`)
}

/** One stream of an app in this process. */
class Listening {
  readonly cancel = new Cancel()
  readonly ended: Promise<JSONRPCResponse | undefined>
  /** Whether what is sent is taken. */
  takes = true
  readonly #heard: JSONRPCNotification[] = []
  #wake = gate()

  constructor(
    app: Rally,
    notifications: object,
    { principal, meta = WITH_TASKS }: { principal?: string; meta?: object } = {},
  ) {
    const notify = (text: string): boolean => {
      const message = JSON.parse(text) as JSONRPCNotification
      checkMessage(message, 'subscriptions/listen')
      if (this.takes) this.#heard.push(message)
      this.#wake.open()
      return this.takes
    }
    const message = request('subscriptions/listen', { notifications }, meta)
    this.ended = app
      .dispatch(message, { notify, caller: callerNamed(principal), cancel: this.cancel })
      .then((reply) => {
        const response = reply && (JSON.parse(reply.text) as JSONRPCResponse)
        if (response !== undefined) checkMessage(response, 'subscriptions/listen')
        return response
      })
    onTestFinished(() => this.cancel.cancel())
  }

  async next(): Promise<Record<string, unknown>> {
    while (this.#heard.length === 0) {
      await this.#wake.promise
      this.#wake = gate()
    }
    return this.#heard.shift()?.params ?? {}
  }

  /** What is told of a task until it stands like this. */
  async until(isWanted: (task: Task) => boolean): Promise<Task[]> {
    const told: Task[] = []
    for (;;) {
      const task = (await this.next()) as unknown as Task
      told.push(task)
      if (isWanted(task)) return told
    }
  }

  get waiting(): number {
    return this.#heard.length
  }
}

async function agreedTo(listening: Listening): Promise<unknown> {
  return (await listening.next())['notifications']
}

describe('listening to tasks', () => {
  test('tells how each stands now, and then each change up to its end, with all that tasks/get would say', async () => {
    const { caller, instance } = opened(asking)
    const id = await caller.begin('ask')
    await caller.asked(id, 'sure')
    const listening = new Listening(instance.app, { taskIds: [id] })
    expect(await agreedTo(listening)).toEqual({ taskIds: [id] })
    const { resultType: _type, _meta, ...shown } = (await caller.get(id)) as unknown as Record<string, unknown>
    const { _meta: told, ...now } = await listening.next()
    expect(now).toEqual(shown)
    expect(told).toEqual({ [META_SUBSCRIPTION]: expect.any(Number) })
    await caller.update(id, { sure: YES })
    const all = await listening.until(({ status }) => status === 'completed')
    expect(all.map(({ status }) => status)).toContain('working')
    expect(all.at(-1)).toMatchObject({ result: { content: [{ text: 'true' }] } })
  })

  test('tells of work that another instance does', async () => {
    const office = new Office()
    office.instance(asking)
    const { app } = office.instance(asking, { tasks: { concurrency: 0 } })
    const caller = new Caller(office, app)
    const id = await caller.begin('ask')
    const listening = new Listening(app, { taskIds: [id] })
    await agreedTo(listening)
    await listening.until(({ status }) => status === 'input_required')
    await caller.cancel(id)
    await listening.until(({ status }) => status === 'cancelled')
  })

  test('tells each version once, and of none that is older than one already told', async () => {
    const { caller, instance } = opened(asking)
    const id = await caller.begin('ask')
    await caller.asked(id, 'sure')
    const first = gate()
    let reads = 0
    instance.view.after = (operation) => (operation === 'read' && (reads += 1) === 2 ? first.promise : undefined)
    const listening = new Listening(instance.app, { taskIds: [id] })
    await agreedTo(listening)
    // The read that it began with is slow, and what it brings is out of date by then.
    await caller.cancel(id)
    await listening.until(({ status }) => status === 'cancelled')
    first.open()
    await microtasks()
    expect(listening.waiting).toBe(0)
  })

  test("agrees to one's own tasks only: others and unknown ones are left out, and nothing is told of them", async () => {
    const { office, instance } = opened(asking)
    const [ada, bob] = [new Caller(office, instance.app, 'ada'), new Caller(office, instance.app, 'bob')]
    const [hers, his] = [await ada.begin('ask'), await bob.begin('ask')]
    await ada.asked(hers, 'sure')
    const listening = new Listening(
      instance.app,
      { taskIds: [his, hers, UNKNOWN, hers, '', '\0'], toolsListChanged: true },
      { principal: 'ada' },
    )
    expect(await agreedTo(listening)).toEqual({ taskIds: [hers], toolsListChanged: true })
    expect(await listening.next()).toMatchObject({ taskId: hers })
    await bob.asked(his, 'sure')
    await bob.cancel(his)
    await ada.cancel(hers)
    expect(await listening.next()).toMatchObject({ taskId: hers, status: 'cancelled' })
    await microtasks()
    expect(listening.waiting).toBe(0)
    const nobody = new Listening(instance.app, { taskIds: [hers] })
    expect(await agreedTo(nobody)).toEqual({ taskIds: [] })
  })

  test('needs the extension, where tasks are asked for', async () => {
    const { app } = opened(asking).instance
    const meta = { [META_CAPABILITIES]: EVERYTHING }
    expect(await new Listening(app, { taskIds: [] }, { meta }).ended).toMatchObject({
      error: { code: -32021, data: { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } } },
    })
    expect(await agreedTo(new Listening(app, { toolsListChanged: true }, { meta }))).toEqual({ toolsListChanged: true })
  })

  test.each([
    [{ taskIds: 'all' }, 'must be a list of task ids'],
    [{ taskIds: [1] }, 'must be a list of task ids'],
    [{ taskIds: {} }, 'must be a list of task ids'],
    [{ taskIds: Array.from({ length: 101 }, () => UNKNOWN) }, 'may contain at most 100 task ids'],
  ])('is refused with -32602 where it asks for what cannot be: %j', async (notifications, why) => {
    const { app } = opened(asking).instance
    expect(await new Listening(app, notifications).ended).toMatchObject({
      error: { code: -32602, message: expect.stringContaining(why) },
    })
  })

  test('is over when the server drains, or the client leaves, and then nobody listens to the store for it', async () => {
    const { caller, instance } = opened(asking, { tasks: { concurrency: 0 } })
    const id = await caller.begin('ask')
    const [one, other] = [
      new Listening(instance.app, { taskIds: [id] }),
      new Listening(instance.app, { taskIds: [id] }),
    ]
    await Promise.all([one.next(), other.next(), one.next(), other.next()])
    expect(instance.view.listeners).toBe(1)
    one.cancel.cancel()
    expect(await one.ended).toBeUndefined()
    expect(instance.view.listeners).toBe(1)
    instance.app.drain()
    expect(await other.ended).toMatchObject({ result: { resultType: 'complete' } })
    expect(instance.view.listeners).toBe(0)
  })

  test('looks at no task any longer that is over', async () => {
    const { caller, instance } = opened(asking, { tasks: { concurrency: 0 } })
    const id = await caller.begin('ask')
    const listening = new Listening(instance.app, { taskIds: [id] })
    await agreedTo(listening)
    await listening.next()
    await caller.cancel(id)
    await listening.until(({ status }) => status === 'cancelled')
    expect(instance.view.listeners).toBe(0)
  })

  test('ends for a reader that is too far behind, so that it listens anew', async () => {
    const { caller, instance } = opened(asking)
    const id = await caller.begin('ask')
    await caller.asked(id, 'sure')
    const listening = new Listening(instance.app, { taskIds: [id] })
    await agreedTo(listening)
    await listening.next()
    listening.takes = false
    await caller.update(id, { sure: YES })
    expect(await listening.ended).toMatchObject({ result: { resultType: 'complete' } })
  })

  test('goes on after a store that failed to tell once', async () => {
    const { caller, instance } = opened(asking, { tasks: { concurrency: 0 } })
    const id = await caller.begin('ask')
    const listening = new Listening(instance.app, { taskIds: [id] })
    await agreedTo(listening)
    await listening.next()
    instance.view.before = (operation) => {
      if (operation === 'read') throw new Error('The connection was lost.')
    }
    await instance.view.change(id, {}, { message: 'One.' })
    await microtasks()
    instance.view.before = () => {}
    await instance.view.change(id, {}, { message: 'Two.' })
    expect(await listening.next()).toMatchObject({ statusMessage: 'Two.' })
    expect(instance.logged).toEqual([expect.stringContaining('The store failed. Until it works again')])
  })

  test('tells of changes of which no news comes too, a while later', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const { caller, instance } = opened(asking, { tasks: { concurrency: 0 } })
    const id = await caller.begin('ask')
    const listening = new Listening(instance.app, { taskIds: [id] })
    await agreedTo(listening)
    await listening.next()
    instance.view.deaf = true
    await caller.cancel(id)
    await microtasks()
    expect(listening.waiting).toBe(0)
    vi.advanceTimersByTime(5_000)
    expect(await listening.next()).toMatchObject({ status: 'cancelled' })
    expect(vi.getTimerCount()).toBe(0)
  })

  test('is an event stream over HTTP', async () => {
    const { caller, instance } = opened(asking)
    const { url, close } = await serve(instance.app, { port: 0, handleSignals: false })
    onTestFinished(close)
    const id = await caller.begin('ask')
    await caller.asked(id, 'sure')
    const message = request('subscriptions/listen', { notifications: { taskIds: [id] } }, WITH_TASKS)
    const response = await fetch(url, { method: 'POST', headers: headersOf(message), body: JSON.stringify(message) })
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    await caller.update(id, { sure: YES })
    await caller.said(id)
    instance.app.drain()
    const events = eventsOf(await response.text()) as object[]
    for (const event of events) checkMessage(event, 'subscriptions/listen')
    expect(events[0]).toMatchObject({ method: 'notifications/subscriptions/acknowledged' })
    expect(events.at(-1)).toMatchObject({ id: message.id, result: { resultType: 'complete' } })
    expect(events.slice(1, -1).map((event) => (event as { method?: string }).method)).toContain('notifications/tasks')
  })
})
