import { expect, test } from 'vitest'
import { ChangeQueue } from './subscription.ts'

test('what is put is taken in its order, and what says the same is one', () => {
  const inbox = new ChangeQueue<string>('missed')
  inbox.put('a', 'first')
  inbox.put('b', 'second')
  inbox.put('a', 'again')
  expect([inbox.take(), inbox.take(), inbox.take()]).toEqual(['first', 'second', undefined])
  inbox.put('a', 'anew')
  expect(inbox.take()).toBe('anew')
})

test('whoever waits is woken by what comes, and by the end', async () => {
  const inbox = new ChangeQueue<string>('missed')
  const waiting = inbox.more()
  inbox.put('a', 'first')
  await waiting
  await inbox.more()
  inbox.take()
  const last = inbox.more()
  expect(inbox.isEnded).toBe(false)
  inbox.end()
  await last
  await inbox.more()
  expect(inbox.isEnded).toBe(true)
})

test('more than 1000 are not held, and that they were there is told', () => {
  const inbox = new ChangeQueue<string>('missed')
  for (let i = 0; i < 5_000; i += 1) inbox.put(`key ${i}`, `value ${i}`)
  const taken: (string | undefined)[] = []
  for (let next = inbox.take(); next !== undefined; next = inbox.take()) taken.push(next)
  expect(taken).toHaveLength(1_001)
  expect(taken.at(0)).toBe('value 0')
  expect(taken.at(-1)).toBe('missed')
})
