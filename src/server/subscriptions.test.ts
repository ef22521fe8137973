import { describe, expect, test } from 'vitest'
import { Cancel } from '../protocol/cancel.ts'
import type { RequestId, SubscriptionFilter } from '../protocol/messages.ts'
import { META_SUBSCRIPTION } from '../protocol/revisions/2026-07-28.ts'
import type { Bus, ChangeEvent } from './subscriptions.ts'
import { readLimits } from './limits.ts'
import { inProcessBus, readFilter as readFilterWithin, Subscriptions } from './subscriptions.ts'

const readFilter = (requested: unknown, has: Parameters<typeof readFilterWithin>[1]): SubscriptionFilter =>
  readFilterWithin(requested, has, readLimits())

interface Notification {
  method: string
  params: { _meta: Record<string, RequestId>; uri?: string; notifications?: SubscriptionFilter }
}

function quiet(): { errors: string[]; logger: { warn: () => void; error: (message: string) => void } } {
  const errors: string[] = []
  return { errors, logger: { warn: () => {}, error: (message) => void errors.push(message) } }
}

/** A bus that tells how many listen to it. */
function countingBus(): Bus & { listening: () => number } {
  const bus = inProcessBus()
  let listeners = 0
  return {
    publish: (change) => bus.publish(change),
    subscribe(listener) {
      listeners += 1
      const leave = bus.subscribe(listener)
      return () => {
        listeners -= 1
        leave()
      }
    },
    listening: () => listeners,
  }
}

interface Listening {
  received: Notification[]
  cancel: Cancel
  ended: Promise<boolean>
}

function listen(
  to: Subscriptions,
  id: RequestId,
  filter: SubscriptionFilter,
  take: () => unknown = () => {},
): Listening {
  const received: Notification[] = []
  const cancel = new Cancel()
  const notify = (text: string): unknown => {
    received.push(JSON.parse(text) as Notification)
    return take()
  }
  return { received, cancel, ended: to.listen({ id, filter, notify, cancel }) }
}

const EVERYTHING: SubscriptionFilter = {
  toolsListChanged: true,
  promptsListChanged: true,
  resourcesListChanged: true,
  resourceSubscriptions: ['a://b', 'a://c'],
}

const CHANGES: readonly ChangeEvent[] = [
  { type: 'tools' },
  { type: 'prompts' },
  { type: 'resources' },
  { type: 'updated', uri: 'a://b' },
  { type: 'updated', uri: 'a://other' },
]

const heard = ({ received }: Listening): string[] =>
  received.slice(1).map(({ method, params: { uri = '' } }) => `${method.replace('notifications/', '')} ${uri}`.trim())

describe('a stream', () => {
  test.each([
    [
      'everything',
      EVERYTHING,
      ['tools/list_changed', 'prompts/list_changed', 'resources/list_changed', 'resources/updated a://b'],
    ],
    ['tools', { toolsListChanged: true }, ['tools/list_changed']],
    ['prompts', { promptsListChanged: true }, ['prompts/list_changed']],
    ['the list of resources', { resourcesListChanged: true }, ['resources/list_changed']],
    ['one resource', { resourceSubscriptions: ['a://other'] }, ['resources/updated a://other']],
    ['nothing', {}, []],
    ['nothing, said at length', { toolsListChanged: false, resourceSubscriptions: [] }, []],
  ])('acknowledges first, and then brings what was asked for: %s', (_what, filter, methods) => {
    const subscriptions = new Subscriptions(inProcessBus(), quiet().logger)
    const stream = listen(subscriptions, 1, filter)
    for (const change of CHANGES) subscriptions.publish(change)
    expect(stream.received[0]).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: { _meta: { [META_SUBSCRIPTION]: 1 }, notifications: filter },
    })
    expect(heard(stream)).toEqual(methods)
  })

  test.each([7, 0, 'seven', '7', '"', ''])('has the id of its request on every message: %j', (id) => {
    const subscriptions = new Subscriptions(inProcessBus(), quiet().logger)
    const { received } = listen(subscriptions, id, EVERYTHING)
    for (const change of CHANGES) subscriptions.publish(change)
    expect(received.map(({ params }) => params._meta[META_SUBSCRIPTION])).toEqual([id, id, id, id, id])
  })

  test('ends, with the response that says so, where its reader is too slow, and others go on', async () => {
    const subscriptions = new Subscriptions(inProcessBus(), quiet().logger)
    const slow = listen(subscriptions, 1, EVERYTHING, () => false)
    const quick = listen(subscriptions, 2, EVERYTHING)
    for (const change of CHANGES) subscriptions.publish(change)
    expect(await slow.ended).toBe(true)
    expect(heard(slow)).toEqual(['tools/list_changed'])
    expect(heard(quick)).toHaveLength(4)
  })
})

describe('the bus', () => {
  test('is listened to once, and only while a stream is open', async () => {
    const bus = countingBus()
    const subscriptions = new Subscriptions(bus, quiet().logger)
    expect(bus.listening()).toBe(0)
    const [one, other] = [listen(subscriptions, 1, EVERYTHING), listen(subscriptions, 2, EVERYTHING)]
    expect(bus.listening()).toBe(1)
    one.cancel.cancel()
    expect(await one.ended).toBe(false)
    expect(bus.listening()).toBe(1)
    other.cancel.cancel()
    expect(await other.ended).toBe(false)
    expect(bus.listening()).toBe(0)
    const again = listen(subscriptions, 3, EVERYTHING)
    expect(bus.listening()).toBe(1)
    subscriptions.publish({ type: 'tools' })
    expect(heard(again)).toEqual(['tools/list_changed'])
    expect(heard(one)).toEqual([])
  })

  test('carries a change to every instance that shares it, and a delivery stays with one', () => {
    const bus = inProcessBus()
    const [here, there] = [new Subscriptions(bus, quiet().logger), new Subscriptions(bus, quiet().logger)]
    const [near, far] = [listen(here, 1, EVERYTHING), listen(there, 1, EVERYTHING)]
    here.publish({ type: 'prompts' })
    here.deliver({ type: 'tools' })
    expect(heard(near)).toEqual(['prompts/list_changed', 'tools/list_changed'])
    expect(heard(far)).toEqual(['prompts/list_changed'])
  })

  test.each([
    [
      'throws',
      () => {
        throw new Error('no broker')
      },
    ],
    ['rejects', () => Promise.reject(new Error('no broker'))],
  ])('that %s is told to the log, and nobody else suffers', async (_how, publish: Bus['publish']) => {
    const { errors, logger } = quiet()
    const subscriptions = new Subscriptions({ publish, subscribe: () => () => {} }, logger)
    subscriptions.publish({ type: 'tools' })
    await Promise.resolve()
    await Promise.resolve()
    expect(errors).toEqual(['bus.publish() failed; clients are not notified of this change.'])
  })
})

test('a bus that cannot be listened to is an error before anything is promised', async () => {
  const failing: Bus = {
    publish: () => {},
    subscribe: () => {
      throw new Error('no broker')
    },
  }
  const stream = listen(new Subscriptions(failing, quiet().logger), 1, EVERYTHING)
  await expect(stream.ended).rejects.toThrow('no broker')
  expect(stream.received).toEqual([])
})

describe('the end', () => {
  test('comes to all streams properly, and at once to those that come later', async () => {
    const bus = countingBus()
    const subscriptions = new Subscriptions(bus, quiet().logger)
    const before = listen(subscriptions, 1, EVERYTHING)
    subscriptions.end()
    const after = listen(subscriptions, 2, EVERYTHING)
    expect([await before.ended, await after.ended]).toEqual([true, true])
    expect(after.received).toHaveLength(1)
    expect(bus.listening()).toBe(0)
  })

  test('is none of the server where the client had gone before', async () => {
    const bus = countingBus()
    const subscriptions = new Subscriptions(bus, quiet().logger)
    const cancel = new Cancel()
    cancel.cancel()
    expect(await subscriptions.listen({ id: 1, filter: EVERYTHING, notify: () => {}, cancel })).toBe(false)
    expect(bus.listening()).toBe(0)
  })
})

test('no more than ten thousand streams are open at a time', () => {
  const subscriptions = new Subscriptions(inProcessBus(), quiet().logger)
  const cancel = new Cancel()
  void subscriptions.listen({ id: 0, filter: {}, notify: () => {}, cancel })
  for (let id = 1; id < 10_000; id += 1) void subscriptions.listen({ id, filter: {}, notify: () => {} })
  expect(() => subscriptions.listen({ id: 10_000, filter: {}, notify: () => {} })).toThrow(
    'Too many open subscriptions: all 10000 are in use (limits.maxSubscriptions)',
  )
  cancel.cancel()
  expect(() => subscriptions.listen({ id: 10_000, filter: {}, notify: () => {} })).not.toThrow()
})

function opened(subscriptions: Subscriptions, owner: string, filter = {}): Promise<boolean> {
  return subscriptions.listen({ id: 1, filter, owner, notify: () => {} })
}

describe('a principal', () => {
  test('has a quarter of the streams at most', () => {
    const subscriptions = new Subscriptions(inProcessBus(), quiet().logger, {
      limits: readLimits({ maxSubscriptions: 8 }),
    })
    for (let i = 0; i < 2; i += 1) void opened(subscriptions, 'ann')
    expect(() => opened(subscriptions, 'ann')).toThrow(
      'Too many open subscriptions: one caller may use 2 of 8 (limits.maxSubscriptions, limits.share), and this one would use more. Close what it does not need, or try again later.',
    )
    void opened(subscriptions, 'bob')
  })

  test('makes room if it has the most, its oldest stream first, and no other does', async () => {
    const limits = readLimits({ maxSubscriptions: 4, share: 0.75 })
    const subscriptions = new Subscriptions(inProcessBus(), quiet().logger, { limits })
    const [first] = [opened(subscriptions, 'ann'), opened(subscriptions, 'ann'), opened(subscriptions, 'ann')]
    const bob = opened(subscriptions, 'bob')
    void opened(subscriptions, 'cyd')
    expect(await first).toBe(true)
    // All have as much as anybody else would then have.
    expect(() => opened(subscriptions, 'bob')).toThrow('all 4 are in use')
    expect(await Promise.race([bob, Promise.resolve('open')])).toBe('open')
  })

  test('has a quarter of the bytes of URIs at most', () => {
    const limits = readLimits({ maxSubscribedBytes: 4_000 })
    const subscriptions = new Subscriptions(inProcessBus(), quiet().logger, { limits })
    const large = { resourceSubscriptions: [`a://${'x'.repeat(600)}`] }
    void opened(subscriptions, 'ann', large)
    expect(() => opened(subscriptions, 'ann', large)).toThrow(
      'one caller may use 1000 of 4000 (limits.maxSubscribedBytes',
    )
    void opened(subscriptions, 'bob', large)
  })
})

test.each<[string, string[], string]>([
  ['one long URI', ['x'.repeat(8_193)], 'a URI must be at most 8192 bytes long (limits.maxUriBytes)'],
  ['one URI of few characters', ['\u20ac'.repeat(3_000)], 'at most 8192 bytes long'],
  [
    'many URIs',
    Array.from({ length: 40 }, () => 'x'.repeat(8_000)),
    'may use 262144 bytes (limits.maxSubscriptionBytes)',
  ],
])('a filter with too many bytes is refused, and not repeated: %s', (_what, resourceSubscriptions, why) => {
  const read = (): unknown => readFilter({ resourceSubscriptions }, { prompts: true, resources: true })
  expect(read).toThrow(why)
  expect(read).not.toThrow('xxx')
})

function uris(count: number): object {
  return { resourceSubscriptions: Array.from({ length: count }, (_, i) => `a://${i}`) }
}

describe('a filter', () => {
  const all = { prompts: true, resources: true }

  test('is what was wished for, as far as it is there to be had', () => {
    expect(readFilter(EVERYTHING, all)).toEqual(EVERYTHING)
    expect(readFilter(EVERYTHING, { prompts: false, resources: true })).toEqual({
      toolsListChanged: true,
      resourcesListChanged: true,
      resourceSubscriptions: ['a://b', 'a://c'],
    })
    expect(readFilter(EVERYTHING, { prompts: true, resources: false })).toEqual({
      toolsListChanged: true,
      promptsListChanged: true,
    })
    expect(readFilter({ toolsListChanged: false, unknown: true }, all)).toEqual({})
    expect(readFilter({}, all)).toEqual({})
  })

  test.each([
    [undefined, 'notifications must be an object'],
    [null, 'notifications must be an object'],
    ['tools', 'notifications must be an object'],
    [[], 'notifications must be an object'],
    [{ toolsListChanged: 'yes' }, 'notifications.toolsListChanged must be a boolean'],
    [{ promptsListChanged: 1 }, 'notifications.promptsListChanged must be a boolean'],
    [{ resourcesListChanged: null }, 'notifications.resourcesListChanged must be a boolean'],
    [{ resourceSubscriptions: 'a://b' }, 'notifications.resourceSubscriptions must be a list of URIs'],
    [{ resourceSubscriptions: ['a://b', 1] }, 'notifications.resourceSubscriptions must be a list of URIs'],
    [{ resourceSubscriptions: { 0: 'a://b' } }, 'notifications.resourceSubscriptions must be a list of URIs'],
  ])('that is malformed is an invalid param: %j', (wished, why) => {
    expect(() => readFilter(wished, all)).toThrow(`Invalid params: ${why}`)
  })

  test('names a thousand resources at most', () => {
    expect(readFilter(uris(1_000), all).resourceSubscriptions).toHaveLength(1_000)
    expect(() => readFilter(uris(1_001), all)).toThrow('may contain at most 1000 URIs')
  })
})
