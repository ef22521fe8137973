// What every Mailbox must do. Each one runs this suite.
import type { Mailbox } from 'mcp-rally'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

/** A mailbox under test. */
export interface MailboxUnderTest {
  readonly mailbox: Mailbox
  /** What another instance of the fleet has in its hands: it holds the same letters. */
  readonly another: Mailbox
  /** Lets time go by for the mailbox, by its clock or by waiting. */
  elapse(ms: number): void | Promise<void>
  close?(): void | Promise<void>
}

/** Long and short, by any clock and on any machine. */
const LONG_MS = 60_000
const SHORT_MS = 50
const PAST_SHORT_MS = 100

const ARRIVES_WITHIN_MS = 10_000

export function mailboxContract(name: string, open: () => MailboxUnderTest | Promise<MailboxUnderTest>): void {
  describe(`the contract of a Mailbox: ${name}`, () => {
    let opened: MailboxUnderTest
    let mailbox: Mailbox
    let another: Mailbox

    beforeEach(async () => {
      opened = await open()
      ;({ mailbox, another } = opened)
    })
    afterEach(() => opened.close?.())

    test('what one instance leaves another one finds', async () => {
      expect(await mailbox.leave('box', 1, 'one', LONG_MS)).toBe(true)
      expect(await another.after('box', 0)).toEqual([{ number: 1, text: 'one' }])
    })

    test('letters come in the order of their numbers, whatever the order they were left in', async () => {
      for (const number of [10, 2, 1_000_999, 9, 100]) await mailbox.leave('box', number, `${number}`, LONG_MS)
      const numbers = (await mailbox.after('box', 0)).map((letter) => letter.number)
      expect(numbers).toEqual([2, 9, 10, 100, 1_000_999])
    })

    test('only those with numbers above the given one come', async () => {
      for (const number of [1, 2, 3]) await mailbox.leave('box', number, `${number}`, LONG_MS)
      expect(await mailbox.after('box', 1)).toEqual([
        { number: 2, text: '2' },
        { number: 3, text: '3' },
      ])
      expect(await another.after('box', 3)).toEqual([])
    })

    test('the first under a number stays, and who comes later is told so', async () => {
      expect(await mailbox.leave('box', 1, 'first', LONG_MS)).toBe(true)
      expect(await mailbox.leave('box', 1, 'first', LONG_MS)).toBe(false)
      expect(await another.leave('box', 1, 'second', LONG_MS)).toBe(false)
      expect(await another.after('box', 0)).toEqual([{ number: 1, text: 'first' }])
    })

    test('of many that leave one under the same number at once exactly one is the first', async () => {
      const left = await Promise.all(
        Array.from({ length: 40 }, (_, i) => (i % 2 ? mailbox : another).leave('box', 1, `${i}`, LONG_MS)),
      )
      expect(left.filter(Boolean)).toHaveLength(1)
      expect(await mailbox.after('box', 0)).toEqual([{ number: 1, text: `${left.indexOf(true)}` }])
    })

    test('boxes have nothing to do with each other', async () => {
      await mailbox.leave('a', 1, 'of a', LONG_MS)
      expect(await mailbox.after('A', 0)).toEqual([])
      expect(await mailbox.leave('b', 1, 'of b', LONG_MS)).toBe(true)
      expect(await mailbox.after('a', 0)).toEqual([{ number: 1, text: 'of a' }])
      expect(await mailbox.after('none', 0)).toEqual([])
    })

    test('a letter whose time is over is gone, and its number is free again', async () => {
      await mailbox.leave('box', 1, 'short', SHORT_MS)
      await mailbox.leave('box', 2, 'long', LONG_MS)
      await opened.elapse(PAST_SHORT_MS)
      expect(await mailbox.after('box', 0)).toEqual([{ number: 2, text: 'long' }])
      expect(await another.leave('box', 1, 'again', LONG_MS)).toBe(true)
      expect(await mailbox.after('box', 0)).toEqual([
        { number: 1, text: 'again' },
        { number: 2, text: 'long' },
      ])
    })

    test('a text comes back to the letter', async () => {
      const texts = ['', '"\\\n\r\t', 'na\u00efve \u{1f600} \u2028', `{"a":"${'x'.repeat(300_000)}"}`]
      for (const [number, text] of texts.entries()) await mailbox.leave('box', number, text, LONG_MS)
      expect((await another.after('box', -1)).map(({ text }) => text)).toEqual(texts)
    })

    test('who watches a box is called back when a letter is left, by whichever instance', async () => {
      for (const [number, by] of [mailbox, another].entries()) {
        const watching = watch(mailbox, 'box')
        await by.leave('box', number, 'text', LONG_MS)
        await watching.called()
        watching.stop()
      }
    })

    test('all that watch a box are called back, but for those that have stopped', async () => {
      const [one, other, third] = [watch(mailbox, 'box'), watch(mailbox, 'box'), watch(another, 'box')]
      one.stop()
      one.stop()
      await mailbox.leave('box', 1, 'text', LONG_MS)
      await other.called()
      await third.called()
      expect(one.calls).toBe(0)
      other.stop()
      third.stop()
    })

    test('who is called back finds the letter there', async () => {
      const watching = watch(another, 'box')
      await mailbox.leave('box', 7, 'there', LONG_MS)
      await watching.called()
      expect(await another.after('box', 6)).toEqual([{ number: 7, text: 'there' }])
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

function watch(mailbox: Mailbox, box: string): Watching {
  const watching = {
    calls: 0,
    called: async () => {
      await expect.poll(() => watching.calls, { timeout: ARRIVES_WITHIN_MS }).toBeGreaterThan(0)
    },
    stop: mailbox.watch(box, () => {
      watching.calls += 1
    }),
  }
  return watching
}
