// What a client gets that comes back for the rest of its call, and how long it is kept waiting.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { EventSink } from '../../server/reply.ts'
import type { Mailbox } from '../../store/mailbox.ts'
import { MemoryMailbox } from '../../store/memory/mailbox.ts'
import type { BoxReading } from './channel-reader.ts'
import { BoxReader } from './channel-reader.ts'
import { beginOf, isLast, lastOf } from './event-position.ts'

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
let over: number
let complaints: unknown[]

beforeEach(() => {
  vi.useFakeTimers()
  mailbox = new MemoryMailbox()
  sink = new Sink()
  over = 0
  complaints = []
})
afterEach(() => {
  vi.useRealTimers()
})

function read(options: Partial<BoxReading> = {}): BoxReader {
  const reading = {
    mailbox,
    name: 'box',
    place: { box: 'stream', number: lastOf(0) },
    eventId: ({ number }: { number: number }) => `at ${number}`,
    primes: true,
    waitMs: 30_000,
    logger: { warn: () => {}, error: (message: string) => void complaints.push(message) },
    ...options,
  }
  return new BoxReader(reading, sink, () => {
    over += 1
  })
}

const leave = (number: number, text: string): Promise<boolean> => mailbox.leave('box', number, text, KEPT_MS)
const soon = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0)

test('The numbers of a leg follow those of the one before, and the last of a leg is known', () => {
  expect(beginOf(1)).toBe(lastOf(0) + 1)
  expect([lastOf(0), lastOf(7), beginOf(1), lastOf(1) - 1].map(isLast)).toEqual([true, true, false, false])
})

test('What is there is told at once and in order, each under its own id, up to the end of the leg', async () => {
  await leave(lastOf(1), 'last')
  await leave(beginOf(1) + 2, 'second')
  await leave(beginOf(1) + 1, 'first')
  await leave(beginOf(2) + 1, 'of the next leg')
  read()
  await soon()
  expect(sink.data).toEqual(['first', 'second', 'last'])
  const ids = [...sink.text.matchAll(/^id: at (\d+)$/gm)].map(([, number]) => Number(number))
  expect(ids).toEqual([lastOf(0), beginOf(1) + 1, beginOf(1) + 2, lastOf(1)])
  expect(sink.text).toMatch(/^retry: \d+$/m)
  expect([sink.ended, over]).toEqual([true, 1])
})

test.each([
  [true, 'id: at 999\nretry: 200\ndata: \n\n'],
  [false, 'id: at 999\nretry: 200\n\n'],
])('It begins with an id to come back with, primed %s', async (primes, text) => {
  read({ primes })
  await soon()
  expect(sink.text).toBe(text)
})

test('What is not there yet is told when it comes', async () => {
  read()
  await soon()
  await leave(beginOf(1) + 1, 'first')
  await soon()
  expect(sink.data).toEqual(['first'])
  expect(sink.ended).toBe(false)
  await leave(lastOf(1), 'last')
  await soon()
  expect(sink.data).toEqual(['first', 'last'])
  expect(sink.ended).toBe(true)
})

test('A mailbox that forgets to call back is looked into again after a while', async () => {
  const mute: Mailbox = {
    leave: (...args) => mailbox.leave(...args),
    after: (...args) => mailbox.after(...args),
    watch: () => () => {},
  }
  read({ mailbox: mute })
  await soon()
  await leave(lastOf(1), 'last')
  await soon()
  expect(sink.data).toEqual([])
  await vi.advanceTimersByTimeAsync(2_000)
  expect(sink.data).toEqual(['last'])
})

test('Who waits in vain has to come back, and nothing of them is left', async () => {
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
  expect([sink.ended, over, watching, vi.getTimerCount()]).toEqual([true, 1, 0, 0])
})

test('Who has left is told nothing more', async () => {
  const reader = read()
  await soon()
  reader.end()
  reader.end()
  await leave(lastOf(1), 'last')
  await soon()
  expect(sink.data).toEqual([])
  expect(over).toBe(1)
})

test('A mailbox that fails ends the stream, and the log has it', async () => {
  const broken: Mailbox = {
    leave: () => Promise.reject(new Error('Down.')),
    after: () => Promise.reject(new Error('Down.')),
    watch: () => () => {},
  }
  read({ mailbox: broken })
  await soon()
  expect([sink.ended, over]).toEqual([true, 1])
  expect(complaints).toEqual(['A mailbox could not be read.'])
})
