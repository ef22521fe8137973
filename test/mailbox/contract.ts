// What every Mailbox must do. Each one runs this suite.
import type { Mailbox } from 'mcp-rally'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { LONG_MS, PAST_SHORT_MS, SHORT_MS, type Open, type UnderTest } from '../stores/under-test.ts'

const ARRIVES_WITHIN_MS = 10_000

export function mailboxContract(name: string, open: Open<Mailbox>): void {
  describe(`the contract of a Mailbox: ${name}`, () => {
    let opened: UnderTest<Mailbox>
    let mailbox: Mailbox
    let another: Mailbox

    beforeEach(async () => {
      opened = await open()
      ;({ part: mailbox, another } = opened)
    })
    afterEach(() => opened.close?.())

    test('what one instance leaves another one finds', async () => {
      expect(await mailbox.leave('channel', 1, 'one', LONG_MS)).toBe(true)
      expect(await another.after('channel', 0)).toEqual([{ number: 1, text: 'one' }])
    })

    test('events come in the order of their numbers, whatever the order they were left in', async () => {
      for (const number of [10, 2, 1_000_999, 9, 100]) await mailbox.leave('channel', number, `${number}`, LONG_MS)
      const numbers = (await mailbox.after('channel', 0)).map((event) => event.number)
      expect(numbers).toEqual([2, 9, 10, 100, 1_000_999])
    })

    test('only those with numbers above the given one come', async () => {
      for (const number of [1, 2, 3]) await mailbox.leave('channel', number, `${number}`, LONG_MS)
      expect(await mailbox.after('channel', 1)).toEqual([
        { number: 2, text: '2' },
        { number: 3, text: '3' },
      ])
      expect(await another.after('channel', 3)).toEqual([])
    })

    test('the first under a number stays, and who comes later is told so', async () => {
      expect(await mailbox.leave('channel', 1, 'first', LONG_MS)).toBe(true)
      expect(await mailbox.leave('channel', 1, 'first', LONG_MS)).toBe(false)
      expect(await another.leave('channel', 1, 'second', LONG_MS)).toBe(false)
      expect(await another.after('channel', 0)).toEqual([{ number: 1, text: 'first' }])
    })

    test('of many that leave one under the same number at once exactly one is the first', async () => {
      const left = await Promise.all(
        Array.from({ length: 40 }, (_, i) => (i % 2 ? mailbox : another).leave('channel', 1, `${i}`, LONG_MS)),
      )
      expect(left.filter(Boolean)).toHaveLength(1)
      expect(await mailbox.after('channel', 0)).toEqual([{ number: 1, text: `${left.indexOf(true)}` }])
    })

    test('channels have nothing to do with each other', async () => {
      await mailbox.leave('a', 1, 'of a', LONG_MS)
      expect(await mailbox.after('A', 0)).toEqual([])
      expect(await mailbox.leave('b', 1, 'of b', LONG_MS)).toBe(true)
      expect(await mailbox.after('a', 0)).toEqual([{ number: 1, text: 'of a' }])
      expect(await mailbox.after('none', 0)).toEqual([])
    })

    test('an event whose time is over is gone, and its number is free again', async () => {
      await mailbox.leave('channel', 1, 'short', SHORT_MS)
      await mailbox.leave('channel', 2, 'long', LONG_MS)
      await opened.elapse(PAST_SHORT_MS)
      expect(await mailbox.after('channel', 0)).toEqual([{ number: 2, text: 'long' }])
      expect(await another.leave('channel', 1, 'again', LONG_MS)).toBe(true)
      expect(await mailbox.after('channel', 0)).toEqual([
        { number: 1, text: 'again' },
        { number: 2, text: 'long' },
      ])
    })

    test('a text comes back unchanged', async () => {
      const texts = ['', '"\\\n\r\t', 'na\u00efve \u{1f600} \u2028', `{"a":"${'x'.repeat(300_000)}"}`]
      for (const [number, text] of texts.entries()) await mailbox.leave('channel', number, text, LONG_MS)
      expect((await another.after('channel', -1)).map(({ text }) => text)).toEqual(texts)
    })

    test('who watches a channel is called back when an event is left, by whichever instance', async () => {
      for (const [number, by] of [mailbox, another].entries()) {
        const watching = watch(mailbox, 'channel')
        await by.leave('channel', number, 'text', LONG_MS)
        await watching.called()
        watching.stop()
      }
    })

    test('all that watch a channel are called back, but for those that have stopped', async () => {
      const [one, other, third] = [watch(mailbox, 'channel'), watch(mailbox, 'channel'), watch(another, 'channel')]
      one.stop()
      one.stop()
      await mailbox.leave('channel', 1, 'text', LONG_MS)
      await other.called()
      await third.called()
      expect(one.calls).toBe(0)
      other.stop()
      third.stop()
    })

    test('who is called back finds the event there', async () => {
      const watching = watch(another, 'channel')
      await mailbox.leave('channel', 7, 'there', LONG_MS)
      await watching.called()
      expect(await another.after('channel', 6)).toEqual([{ number: 7, text: 'there' }])
      watching.stop()
    })
  })
}

interface Watching {
  calls: number
  /** Waits for the first call. */
  called(): Promise<void>
  stop(): void
}

function watch(mailbox: Mailbox, channel: string): Watching {
  const watching = {
    calls: 0,
    called: async () => {
      await expect.poll(() => watching.calls, { timeout: ARRIVES_WITHIN_MS }).toBeGreaterThan(0)
    },
    stop: mailbox.watch(channel, () => {
      watching.calls += 1
    }),
  }
  return watching
}
