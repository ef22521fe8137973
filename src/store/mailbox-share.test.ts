import { beforeEach, expect, test } from 'vitest'
import { MemoryMailbox } from './memory/mailbox.ts'
import { MailboxShare } from './mailbox-share.ts'

let now: number
let mailbox: MailboxShare

beforeEach(() => {
  now = 0
  mailbox = new MailboxShare(new MemoryMailbox({ now: () => now }), 1_000, () => now)
})

test('An owner that has used its share is refused until its events expire, and others are not', async () => {
  for (let number = 1; number <= 4; number += 1) await mailbox.leave('of ann', number, 'x'.repeat(50), 60_000, 'ann')
  await expect(mailbox.leave('of ann', 5, '', 60_000, 'ann')).rejects.toMatchObject({
    code: 'MAILBOX_FULL',
    message: expect.stringContaining('uses its 1000 bytes (limits.maxWaitingBytes)') as string,
  })
  expect(() => mailbox.checkRoom('ann')).toThrow('limits.maxWaitingBytes')
  expect(await mailbox.leave('of bob', 1, 'x', 60_000, 'bob')).toBe(true)
  now = 60_000
  expect(await mailbox.leave('of ann', 5, 'x', 60_000, 'ann')).toBe(true)
})

test('An event that was not stored does not count', async () => {
  for (let i = 0; i < 100; i += 1) await mailbox.leave('channel', 1, 'x'.repeat(300), 60_000, 'ann')
  expect(await mailbox.leave('channel', 2, 'x'.repeat(200), 60_000, 'ann')).toBe(true)
})
