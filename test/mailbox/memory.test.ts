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

test('The first app gives a mailbox its size, if its options do not', async () => {
  const mailbox = new MemoryMailbox()
  mailbox.sizeTo(10_000, 0.5)
  mailbox.sizeTo(1_000_000, 1)
  for (let i = 0; i < 100; i += 1) await mailbox.leave(`channel ${i}`, 1, 'x'.repeat(800), KEPT_MS, 'ann')
  expect(mailbox.size).toBe(5)
  await expect(mailbox.leave('large', 1, 'x'.repeat(5_000), KEPT_MS, 'ann')).rejects.toThrow(
    'an event must be at most 5000 bytes (limits.maxWaitingBytes, limits.share), got 5200.',
  )
  const sized = new MemoryMailbox({ maxBytes: 1_000_000 })
  sized.sizeTo(1_000, 1)
  expect(await sized.leave('large', 1, 'x'.repeat(5_000), KEPT_MS)).toBe(true)
})

test('An owner that fills the mailbox drops its own channels, and not those of another', async () => {
  const mailbox = new MemoryMailbox({ maxBytes: 10_000 })
  await mailbox.leave('result of bob', 1, 'x'.repeat(800), KEPT_MS, 'bob')
  for (let i = 0; i < 100; i += 1) await mailbox.leave(`channel ${i}`, 1, 'x'.repeat(800), KEPT_MS, 'ann')
  expect(await mailbox.after('result of bob', 0)).toHaveLength(1)
  // A quarter of the mailbox.
  expect(mailbox.size).toBe(3)
  expect(await mailbox.after('channel 99', 0)).toHaveLength(1)
})

test('When the mailbox is full, the owner that uses the most makes room', async () => {
  const mailbox = new MemoryMailbox({ maxBytes: 10_000, share: 0.6 })
  await mailbox.leave('result of bob', 1, 'x'.repeat(800), KEPT_MS, 'bob')
  for (let i = 0; i < 100; i += 1) {
    await mailbox.leave(`of ann ${i}`, 1, 'x'.repeat(300), KEPT_MS, 'ann')
    await mailbox.leave(`of cyd ${i}`, 1, 'x'.repeat(300), KEPT_MS, 'cyd')
  }
  expect(await mailbox.after('result of bob', 0)).toHaveLength(1)
  await mailbox.leave('more of bob', 1, 'x'.repeat(800), KEPT_MS, 'bob')
  expect(await mailbox.after('result of bob', 0)).toHaveLength(1)
})
