import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { readMessage, StatusMessage } from './status-message.ts'

describe('a status message', () => {
  const write = vi.fn<() => void>()
  let message: StatusMessage

  beforeEach(() => {
    vi.useFakeTimers()
    write.mockClear()
    message = new StatusMessage(undefined, write)
  })
  afterEach(() => {
    message.stop()
    vi.useRealTimers()
  })

  test.each<[Parameters<StatusMessage['progress']>, string]>([
    [[1, 3, 'Copying'], 'Copying'],
    [[1, 3], '1 of 3'],
    [[40], '40'],
    [[2, 5, ''], '2 of 5'],
    [[1, 1, 'x'.repeat(5_000)], 'x'.repeat(1_000)],
  ])('of %j is %j', (progress, text) => {
    message.progress(...progress)
    expect(readMessage(message.take().message).message).toBe(text)
  })

  test('is written soon, once for all that was reported meanwhile, and the last of it', () => {
    for (let i = 1; i <= 50; i += 1) message.progress(i, 50)
    expect(write).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1_000)
    expect(write).toHaveBeenCalledTimes(1)
    expect(readMessage(message.take().message).message).toBe('50 of 50')
  })

  test('goes along with what is written anyway, and is then not written again', () => {
    message.progress(1, 2)
    expect(readMessage(message.take().message).message).toBe('1 of 2')
    expect(message.take()).toEqual({})
    vi.advanceTimersByTime(1_000)
    expect(write).not.toHaveBeenCalled()
  })

  test('is not written any more once the run is over', () => {
    message.progress(1, 2)
    message.stop()
    vi.advanceTimersByTime(1_000)
    expect(write).not.toHaveBeenCalled()
    expect(vi.getTimerCount()).toBe(0)
  })
})
