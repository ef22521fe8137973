// What a client receives that comes back for the rest of its call, and how long it waits.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { EventSink } from '../../server/reply.ts'
import type { Mailbox } from '../../store/mailbox.ts'
import { MemoryMailbox } from '../../store/memory/mailbox.ts'
import type { ChannelReading } from './channel-reader.ts'
import { ChannelReader } from './channel-reader.ts'
import { startOf, endsSegment, endOf } from './event-position.ts'

const KEPT_MS = 60_000

class Sink implements EventSink {
  text = ''
  ended = false

  send(event: string): void {
    if (this.ended) throw new Error('It was written to after its end.')
    this.text += event
  }

  isBehind(): boolean {
    return false
  }

  end(): void {
    this.ended = true
  }

  get data(): string[] {
    return [...this.text.matchAll(/^data: (.+)$/gm)].map(([, data = '']) => data)
  }
}

let mailbox: MemoryMailbox
let sink: Sink
let ended: number
let complaints: unknown[]

beforeEach(() => {
  vi.useFakeTimers()
  mailbox = new MemoryMailbox()
  sink = new Sink()
  ended = 0
  complaints = []
})
afterEach(() => {
  vi.useRealTimers()
})

function read(options: Partial<ChannelReading> = {}): ChannelReader {
  const reading = {
    mailbox,
    name: 'channel',
    position: { channel: 'stream', number: endOf(0) },
    eventId: ({ number }: { number: number }) => `at ${number}`,
    primes: true,
    waitMs: 30_000,
    logger: { warn: () => {}, error: (message: string) => void complaints.push(message) },
    ...options,
  }
  return new ChannelReader(reading, sink, () => {
    ended += 1
  })
}

const leave = (number: number, text: string): Promise<boolean> => mailbox.leave('channel', number, text, KEPT_MS)
const soon = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0)

test('The numbers of a segment follow those of the one before, and its last number is known', () => {
  expect(startOf(1)).toBe(endOf(0) + 1)
  expect([endOf(0), endOf(7), startOf(1), endOf(1) - 1].map(endsSegment)).toEqual([true, true, false, false])
})

test('Stored events are sent at once and in order, each under its own id, up to the end of the segment', async () => {
  await leave(endOf(1), 'last')
  await leave(startOf(1) + 2, 'second')
  await leave(startOf(1) + 1, 'first')
  await leave(startOf(2) + 1, 'of the next segment')
  read()
  await soon()
  expect(sink.data).toEqual(['first', 'second', 'last'])
  const ids = [...sink.text.matchAll(/^id: at (\d+)$/gm)].map(([, number]) => Number(number))
  expect(ids).toEqual([endOf(0), startOf(1) + 1, startOf(1) + 2, endOf(1)])
  expect(sink.text).toMatch(/^retry: \d+$/m)
  expect([sink.ended, ended]).toEqual([true, 1])
})

test.each([
  [true, 'id: at 999\nretry: 200\ndata: \n\n'],
  [false, 'id: at 999\nretry: 200\n\n'],
])('It begins with an id to reconnect with, primed %s', async (primes, text) => {
  read({ primes })
  await soon()
  expect(sink.text).toBe(text)
})

test('An event that is not stored yet is sent when it arrives', async () => {
  read()
  await soon()
  await leave(startOf(1) + 1, 'first')
  await soon()
  expect(sink.data).toEqual(['first'])
  expect(sink.ended).toBe(false)
  await leave(endOf(1), 'last')
  await soon()
  expect(sink.data).toEqual(['first', 'last'])
  expect(sink.ended).toBe(true)
})

test('A mailbox that misses a callback is polled after a while', async () => {
  const mute: Mailbox = {
    leave: (...args) => mailbox.leave(...args),
    after: (...args) => mailbox.after(...args),
    watch: () => () => {},
  }
  read({ mailbox: mute })
  await soon()
  await leave(endOf(1), 'last')
  await soon()
  expect(sink.data).toEqual([])
  await vi.advanceTimersByTimeAsync(2_000)
  expect(sink.data).toEqual(['last'])
})

test('A client that waits in vain has to reconnect, and leaves nothing behind', async () => {
  let watching = 0
  const counting: Mailbox = {
    leave: (...args) => mailbox.leave(...args),
    after: (...args) => mailbox.after(...args),
    watch: (...args) => {
      const stop = mailbox.watch(...args)
      watching += 1
      return () => {
        watching -= 1
        stop()
      }
    },
  }
  read({ mailbox: counting, waitMs: 5_000 })
  await soon()
  expect(watching).toBe(1)
  await vi.advanceTimersByTimeAsync(5_000)
  expect([sink.ended, ended, watching, vi.getTimerCount()]).toEqual([true, 1, 0, 0])
})

test('A client that has left is sent nothing more', async () => {
  const reader = read()
  await soon()
  reader.end()
  reader.end()
  await leave(endOf(1), 'last')
  await soon()
  expect(sink.data).toEqual([])
  expect(ended).toBe(1)
})

test('A mailbox that fails ends the stream, and the log has it', async () => {
  const broken: Mailbox = {
    leave: () => Promise.reject(new Error('Down.')),
    after: () => Promise.reject(new Error('Down.')),
    watch: () => () => {},
  }
  read({ mailbox: broken })
  await soon()
  expect([sink.ended, ended]).toEqual([true, 1])
  expect(complaints).toEqual(['The mailbox could not be read.'])
})
