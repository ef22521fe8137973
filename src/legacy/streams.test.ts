import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { negotiated } from '../protocol/revisions/index.ts'
import { readLimits } from '../server/limits.ts'
import type { EventSink } from '../server/reply.ts'
import { Session } from './session.ts'
import type { EventStream } from './stream.ts'
import { readEventId } from './stream.ts'
import { Streams } from './streams.ts'

class Reader implements EventSink {
  readonly texts: string[] = []
  ended = false
  behind = false

  send(event: string): void {
    this.texts.push(event)
  }

  isBehind(): boolean {
    return this.behind
  }

  end(): void {
    this.ended = true
  }

  get data(): string[] {
    return this.texts.flatMap((text) => /^data: (.+)$/m.exec(text)?.[1] ?? [])
  }
}

function newSession(revision = '2025-06-18', principal?: string): Session {
  const claims = {
    id: `s${Math.random()}`,
    revision: negotiated(revision),
    capabilities: 0,
    carriesState: false,
    clientName: '',
    clientVersion: '',
  }
  return new Session(claims, principal)
}

function open(session: Session, standalone: boolean): EventStream {
  const stream = streams.open(session, standalone)
  if (typeof stream === 'string') throw new Error(stream)
  return stream
}

let forgotten: Session[]
let streams: Streams
beforeEach(() => {
  vi.useFakeTimers()
  forgotten = []
  streams = new Streams({
    keepMs: 1_000,
    now: Date.now,
    limits: readLimits(),
    forgotten: (session) => forgotten.push(session),
  })
})
afterEach(() => {
  vi.useRealTimers()
})

describe('A stream', () => {
  test('sends a reader everything, also the events from before it attached', () => {
    const stream = open(newSession(), false)
    const reader = new Reader()
    stream.send('1')
    stream.attach(reader)
    stream.send('2')
    stream.end()
    stream.send('3')
    expect(reader.data).toEqual(['1', '2'])
    expect(reader.ended).toBe(true)
  })

  test('keeps the last 256 events, and says whether what follows an event is all there', () => {
    const stream = open(newSession(), false)
    stream.attach(new Reader())
    for (let i = 1; i <= 300; i += 1) stream.send(String(i))
    expect(stream.keepsAfter(43)).toBe(false)
    expect(stream.keepsAfter(44)).toBe(true)
    expect(stream.keepsAfter(300)).toBe(true)
    expect(stream.keepsAfter(301)).toBe(false)
    const reader = new Reader()
    stream.attach(reader, 298)
    expect(reader.data).toEqual(['299', '300'])
  })

  test('keeps 256 KiB of events, and the last one whatever its size', () => {
    const stream = open(newSession(), false)
    stream.attach(new Reader())
    for (let i = 0; i < 5; i += 1) stream.send('x'.repeat(100 * 1024))
    expect([2, 3].map((number) => stream.keepsAfter(number))).toEqual([false, true])
    stream.send('y'.repeat(1024 * 1024))
    expect([4, 5].map((number) => stream.keepsAfter(number))).toEqual([false, true])
  })

  test('keeps more before its first reader has come, and no more than 1 MiB', () => {
    const stream = open(newSession(), false)
    for (let i = 0; i < 300; i += 1) stream.send('x')
    expect(stream.keepsAfter(0)).toBe(true)
    for (let i = 0; i < 20; i += 1) stream.send('x'.repeat(100 * 1024))
    expect([309, 310].map((number) => stream.keepsAfter(number))).toEqual([false, true])
  })

  test('of a call leaves out what may be, where the reader is too far behind, and nothing else', () => {
    const stream = open(newSession(), false)
    const slow = new Reader()
    stream.attach(slow)
    expect(stream.notify('1')).toBe(true)
    slow.behind = true
    expect(stream.notify('2')).toBe(false)
    stream.send('3')
    expect(slow).toMatchObject({ ended: false, data: ['1', '3'] })
  })

  test('of no call lets go of a reader that is too far behind, who may come back', () => {
    const stream = open(newSession(), true)
    const slow = new Reader()
    stream.attach(slow)
    stream.send('1')
    slow.behind = true
    stream.send('2')
    expect(slow).toMatchObject({ ended: true, data: ['1'] })
    const again = new Reader()
    stream.attach(again, 1)
    expect(again.data).toEqual(['2'])
  })

  test('is not taken away from its reader by one that left before', () => {
    const stream = open(newSession(), false)
    const [before, after] = [new Reader(), new Reader()]
    stream.attach(before)
    stream.attach(after)
    stream.detach(before)
    stream.send('1')
    expect(after.data).toEqual(['1'])
    expect(before).toMatchObject({ ended: true, data: [] })
  })

  test('has ids that are read back, and nothing else is', () => {
    const stream = open(newSession(), true)
    expect(readEventId(`${stream.id}:12`)).toEqual({ stream: stream.id, number: 12, standalone: true })
    for (const text of ['', ':', 'x:1', stream.id, `${stream.id}:`, `${stream.id}:1.5`, ` ${stream.id}:1`]) {
      expect(readEventId(text)).toBeUndefined()
    }
  })
})

describe('The streams of an instance', () => {
  test('are forgotten when nobody has read them for a while, and their session is reported', () => {
    const session = newSession()
    const [read, unread] = [open(session, false), open(session, false)]
    const reader = new Reader()
    read.attach(reader)
    vi.advanceTimersByTime(2_500)
    expect(streams.size).toBe(1)
    expect([...session.streams.keys()]).toEqual([read.id])
    read.detach(reader)
    unread.send('into the void')
    vi.advanceTimersByTime(2_500)
    expect([streams.size, session.streams.size, forgotten.length]).toEqual([0, 0, 2])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('are bounded: the session with the most makes room, and one that has no more than another does not', () => {
    const many = newSession()
    const read = open(many, false)
    read.attach(new Reader())
    for (let i = 0; i < 9; i += 1) open(many, false)
    for (let i = 0; i < 1_990; i += 1) open(newSession(), false).attach(new Reader())
    expect(streams.size).toBe(2_000)
    for (let i = 0; i < 9; i += 1) open(newSession(), false).attach(new Reader())
    // Those that nobody reads go first.
    expect([streams.size, ...many.streams.values()]).toEqual([2_000, read])
    expect(streams.open(newSession(), false)).toBe('total')
  })

  test('of no call are bounded on their own, so that calls can still ask', () => {
    for (let i = 0; i < 1_000; i += 1) open(newSession(), true).attach(new Reader())
    expect(streams.open(newSession(), true)).toBe('total')
    open(newSession(), false)
    streams.endStandalone()
    expect([streams.standalone, streams.size]).toEqual([0, 1])
  })

  test('keep 32 MiB in all: first those are forgotten that nobody reads', () => {
    const large = 'x'.repeat(250 * 1024)
    const unread = open(newSession(), false)
    unread.send('small')
    unread.send(large)
    const read = Array.from({ length: 132 }, () => {
      const stream = open(newSession(), false)
      stream.attach(new Reader())
      stream.send('small')
      stream.send(large)
      return stream
    })
    expect(unread.keepsAfter(0)).toBe(false)
    expect(read[0]?.keepsAfter(1)).toBe(false)
    expect(read[0]?.keepsAfter(2)).toBe(true)
    expect(read.at(-1)?.keepsAfter(0)).toBe(true)
  })
})

test('A session tells of what belongs to no call on a stream that is read, if there is one', () => {
  const session = newSession()
  const [first, second] = [open(session, true), open(session, true)]
  expect(session.standalone).toBe(first)
  second.attach(new Reader())
  expect(session.standalone).toBe(second)
  open(session, false).attach(new Reader())
  expect(session.standalone).toBe(second)
})

describe('An owner', () => {
  test('has a quarter of the streams at most, in all of its sessions together', () => {
    for (let i = 0; i < 500; i += 1) open(newSession('2025-06-18', 'ann'), false).attach(new Reader())
    expect(streams.open(newSession('2025-06-18', 'ann'), false)).toBe('share')
    open(newSession('2025-06-18', 'bob'), false)
  })

  test('with the most bytes loses them first, and one with few keeps them', () => {
    const bob = open(newSession('2025-06-18', 'bob'), false)
    bob.send('the result')
    for (const principal of ['ann', 'cyd', 'dan', 'eve', 'fay']) {
      for (let i = 0; i < 50; i += 1) open(newSession('2025-06-18', principal), false).send('x'.repeat(250 * 1024))
    }
    expect(bob.keepsAfter(0)).toBe(true)
  })
})
