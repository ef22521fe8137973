import { expect, test } from 'vitest'
import { MemoryMailbox } from '../../src/store/memory/mailbox.ts'
import { mailboxContract } from './contract.ts'

mailboxContract('memory', () => {
  let now = 0
  const mailbox = new MemoryMailbox({ now: () => now })
  return {
    part: mailbox,
    another: mailbox,
    elapse: (ms) => {
      now += ms
    },
  }
})

const KEPT_MS = 60_000

test('The oldest channels are dropped when the mailbox is full', async () => {
  const mailbox = new MemoryMailbox({ maxBytes: 10_000 })
  for (let i = 0; i < 100; i += 1) await mailbox.leave(`channel ${i}`, 1, 'x'.repeat(800), KEPT_MS)
  expect(mailbox.size).toBe(10)
  expect(await mailbox.after('channel 89', 0)).toEqual([])
  expect(await mailbox.after('channel 99', 0)).toHaveLength(1)
})

test('The number of events without a text is bounded too', async () => {
  const mailbox = new MemoryMailbox({ maxBytes: 10_000 })
  for (let i = 0; i < 1_000; i += 1) await mailbox.leave(`channel ${i}`, 1, '', KEPT_MS)
  expect(mailbox.size).toBe(50)
})

test('An event that is larger than the whole mailbox is refused, and nothing is dropped for it', async () => {
  const mailbox = new MemoryMailbox({ maxBytes: 10_000 })
  await mailbox.leave('small', 1, 'x', KEPT_MS)
  await expect(mailbox.leave('large', 1, 'x'.repeat(10_000), KEPT_MS)).rejects.toMatchObject({ code: 'MAILBOX_FULL' })
  expect(await mailbox.after('small', 0)).toHaveLength(1)
})
