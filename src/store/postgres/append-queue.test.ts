import { expect, test } from 'vitest'
import { AppendQueue } from './append-queue.ts'

interface Write {
  readonly to: string
  readonly entries: string
  readonly end: (outcome: boolean | Error) => void
}

/** Writes that end when they are told to. */
function make(): { appending: AppendQueue; writes: Write[] } {
  const writes: Write[] = []
  const appending = new AppendQueue(({ id, fence }, entries) => {
    return new Promise((resolve, reject) => {
      const end = (outcome: boolean | Error): void => (outcome instanceof Error ? reject(outcome) : resolve(outcome))
      writes.push({ to: `${id} ${fence}`, entries, end })
    })
  })
  return { appending, writes }
}

const t = { id: 't', fence: 1 }
const turn = (): Promise<void> => new Promise(setImmediate)
const texts = (writes: readonly Write[]): string[] => writes.map(({ to, entries }) => `${to}: ${entries}`)

test('what is given while others of the same task are being written goes together, in order', async () => {
  const { appending, writes } = make()
  const all = ['1', '', '2', '3'].map((entries) => appending.append(t, entries))
  expect(texts(writes)).toEqual(['t 1: 1'])
  writes[0]?.end(true)
  await turn()
  all.push(appending.append(t, '4'))
  expect(texts(writes)).toEqual(['t 1: 1', 't 1: 2,3'])
  writes[1]?.end(true)
  await turn()
  expect(texts(writes)).toEqual(['t 1: 1', 't 1: 2,3', 't 1: 4'])
  writes[2]?.end(true)
  expect(await Promise.all(all)).toEqual([true, true, true, true, true])
})

test('other tasks, and another fence, wait for nobody', () => {
  const { appending, writes } = make()
  for (const held of [t, { id: 't', fence: 2 }, { id: 'u', fence: 1 }]) void appending.append(held, '1')
  expect(texts(writes)).toEqual(['t 1: 1', 't 2: 1', 'u 1: 1'])
})

test('each hears how it went with its own, also after one that failed', async () => {
  const { appending, writes } = make()
  const all = ['1', '2', '3'].map((entries) => appending.append(t, entries))
  const outcomes = Promise.allSettled(all)
  writes[0]?.end(new Error('The database is away.'))
  await turn()
  expect(texts(writes)).toEqual(['t 1: 1', 't 1: 2,3'])
  writes[1]?.end(false)
  expect((await outcomes).map((outcome) => outcome.status)).toEqual(['rejected', 'fulfilled', 'fulfilled'])
  expect(await all[2]).toBe(false)
  void appending.append(t, '4')
  expect(texts(writes).at(-1)).toBe('t 1: 4')
})
