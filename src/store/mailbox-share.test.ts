import { beforeEach, expect, test } from 'vitest'
import { sessionOwner } from '../protocol/shared-limit.ts'
import { MemoryMailbox } from './memory/mailbox.ts'
import { MailboxShare } from './mailbox-share.ts'

const LIMITS = { maxWaitingBytes: 1_000, share: 0.5 }

let now: number
let mailbox: MailboxShare

beforeEach(() => {
  now = 0
  mailbox = new MailboxShare(new MemoryMailbox({ now: () => now }), LIMITS, () => now)
})

test('An owner that has used its share is refused until its events expire, and others are not', async () => {
  for (let number = 1; number <= 4; number += 1) await mailbox.leave('of ann', number, 'x'.repeat(50), 60_000, 'ann')
  await expect(mailbox.leave('of ann', 5, '', 60_000, 'ann')).rejects.toMatchObject({
    code: 'MAILBOX_FULL',
    message: expect.stringContaining('one caller may store 1000 bytes (limits.maxWaitingBytes') as string,
  })
  expect(() => mailbox.checkRoom('ann')).toThrow('limits.maxWaitingBytes')
  expect(await mailbox.leave('of bob', 1, 'x', 60_000, 'bob')).toBe(true)
  now = 60_000
  expect(await mailbox.leave('of ann', 5, 'x', 60_000, 'ann')).toBe(true)
})

test('Callers without a principal share one limit, whether they have sessions or not', async () => {
  const together = 'all callers without a principal together may store 1000 bytes (limits.maxWaitingBytes'
  const [first, second] = [sessionOwner('1'), sessionOwner('2')]
  expect(await mailbox.leave('of nobody', 1, 'x'.repeat(100), 60_000)).toBe(true)
  for (const number of [1, 2]) await mailbox.leave('of 1', number, 'x'.repeat(50), 60_000, first)
  await expect(mailbox.leave('of 1', 3, '', 60_000, first)).rejects.toThrow('one caller may store 500 bytes')
  await expect(mailbox.leave('of 2', 1, 'x', 60_000, second)).rejects.toThrow(together)
  await expect(mailbox.leave('of nobody', 2, 'x', 60_000)).rejects.toThrow(together)
  expect(await mailbox.leave('of ann', 1, 'x'.repeat(800), 60_000, 'ann')).toBe(true)
  now = 60_000
  expect(await mailbox.leave('of nobody', 2, 'x'.repeat(800), 60_000)).toBe(true)
})

test('An event that was not stored does not count', async () => {
  for (let i = 0; i < 100; i += 1) await mailbox.leave('channel', 1, 'x'.repeat(300), 60_000, 'ann')
  expect(await mailbox.leave('channel', 2, 'x'.repeat(200), 60_000, 'ann')).toBe(true)
})
