import { describe, expect, test, vi } from 'vitest'
import { gathered, scheduler } from './scheduler.ts'

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('what is gathered', () => {
  test('runs in the same turn where no pass has one to take', async () => {
    const ran: string[] = []
    gathered(() => ran.push('gathered'))
    await nextTurn()
    expect(ran).toEqual(['gathered'])
  })

  test.each(['before', 'after'])(
    'waits for the turn that passes asked for %s it, and all that comes of it',
    async (when) => {
      const ran: string[] = []
      const turn = (): void =>
        scheduler.turn(() => {
          void Promise.resolve()
            .then(() => {})
            .then(() => ran.push('came of the turn'))
        })
      if (when === 'before') turn()
      gathered(() => ran.push('gathered'))
      if (when === 'after') turn()
      await nextTurn()
      await nextTurn()
      expect(ran).toEqual(['came of the turn', 'gathered'])
    },
  )

  test('in a turn waits for its end', async () => {
    const ran: string[] = []
    scheduler.turn(() => {
      gathered(() => ran.push('gathered'))
      void Promise.resolve().then(() => ran.push('came of the turn'))
    })
    await nextTurn()
    await nextTurn()
    expect(ran).toEqual(['came of the turn', 'gathered'])
  })
})

test('a turn that throws takes no other with it, and is not swallowed', async () => {
  const uncaught = vi.fn<(error: unknown) => void>()
  const before = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException')
  process.once('uncaughtException', uncaught)
  const ran: string[] = []
  scheduler.turn(() => {
    throw new Error('first')
  })
  scheduler.turn(() => ran.push('second'))
  await nextTurn()
  await nextTurn()
  for (const listener of before) process.on('uncaughtException', listener)
  expect(ran).toEqual(['second'])
  expect(uncaught).toHaveBeenCalledWith(expect.objectContaining({ message: 'first' }), expect.anything())
})
