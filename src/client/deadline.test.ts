import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Deadline } from './deadline.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

/** Something that the test settles, and that tells whether it was cancelled. */
function underWay(deadline: Deadline): {
  promise: Promise<string>
  settle: (value: string) => void
  cancel: () => void
} {
  let settle: ((value: string) => void) | undefined
  const cancel = vi.fn<() => void>()
  const promise = deadline.wait<string>((resolve) => {
    settle = resolve
    return cancel
  })
  promise.catch(() => {})
  return { promise, settle: (value) => settle?.(value), cancel }
}

describe('waiting for a server', () => {
  test('ends with what it waits for, and leaves no timer behind', async () => {
    const { promise, settle, cancel } = underWay(new Deadline('it', 1_000, undefined))
    settle('there')
    expect(await promise).toBe('there')
    expect(cancel).not.toHaveBeenCalled()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('that settles at once leaves no timer behind either', async () => {
    const deadline = new Deadline('it', 1_000, undefined)
    const promise = deadline.wait((resolve) => {
      resolve('there')
      return () => {}
    })
    expect(await promise).toBe('there')
    expect(vi.getTimerCount()).toBe(0)
  })

  test('takes no longer than its time, and is cancelled then', async () => {
    const { promise, cancel } = underWay(new Deadline('tools/call deploy', 1_000, undefined))
    await vi.advanceTimersByTimeAsync(999)
    expect(cancel).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1)
    expect(cancel).toHaveBeenCalledOnce()
    await expect(promise).rejects.toMatchObject({
      code: 'TIMEOUT',
      message: expect.stringContaining('tools/call deploy: the server did not respond within 1000 ms'),
    })
  })

  test('counts over all rounds, pauses included, and not while somebody thinks', async () => {
    const deadline = new Deadline('it', 1_000, undefined)
    const first = underWay(deadline)
    await vi.advanceTimersByTimeAsync(400)
    first.settle('one')
    await first.promise
    const thinking = deadline.waitForUser(
      new Promise<string>((resolve) => void setTimeout(() => resolve('thought'), 3_600_000)),
    )
    await vi.advanceTimersByTimeAsync(3_600_000)
    expect(await thinking).toBe('thought')
    const pause = deadline.sleep(300)
    await vi.advanceTimersByTimeAsync(300)
    await pause
    const last = underWay(deadline)
    await vi.advanceTimersByTimeAsync(299)
    expect(last.cancel).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1)
    await expect(last.promise).rejects.toMatchObject({ code: 'TIMEOUT' })
    await expect(deadline.sleep(1)).rejects.toMatchObject({ code: 'TIMEOUT' })
  })

  test('for ever sets no timer', () => {
    underWay(new Deadline('it', Infinity, undefined))
    expect(vi.getTimerCount()).toBe(0)
  })
})

/** Begins something, aborts it, and sees it end. */
async function ending(begin: (deadline: Deadline) => Promise<unknown>): Promise<void> {
  const controller = new AbortController()
  const deadline = new Deadline('it', 1_000, controller.signal)
  const promise = begin(deadline)
  const inner = deadline.signal
  expect(inner.aborted).toBe(false)
  controller.abort('enough')
  expect(inner.aborted).toBe(true)
  await expect(promise).rejects.toMatchObject({ code: 'ABORTED', message: 'it was aborted.', cause: 'enough' })
  await expect(deadline.sleep(1)).rejects.toMatchObject({ code: 'ABORTED' })
  await expect(deadline.waitForUser(Promise.resolve(1))).rejects.toMatchObject({ code: 'ABORTED' })
}

describe('a signal', () => {
  test('that is aborted already keeps anything from being begun', async () => {
    const deadline = new Deadline('it', 1_000, AbortSignal.abort('changed my mind'))
    const begin = vi.fn<() => () => void>()
    await expect(deadline.wait(begin)).rejects.toMatchObject({ code: 'ABORTED', cause: 'changed my mind' })
    expect(begin).not.toHaveBeenCalled()
    expect(deadline.signal.aborted).toBe(true)
  })

  test('ends a wait, a pause and a thought, and everything after', async () => {
    const cancel = vi.fn<() => void>()
    await ending((deadline) => deadline.wait(() => cancel))
    expect(cancel).toHaveBeenCalledOnce()
    await ending((deadline) => deadline.sleep(500))
    await ending((deadline) => deadline.waitForUser(new Promise(() => {})))
    expect(vi.getTimerCount()).toBe(0)
  })

  test('ends what it was aborted in the beginning of', async () => {
    const controller = new AbortController()
    const cancel = vi.fn<() => void>()
    const promise = new Deadline('it', 1_000, controller.signal).wait(() => {
      controller.abort()
      return cancel
    })
    await expect(promise).rejects.toMatchObject({ code: 'ABORTED' })
    expect(cancel).toHaveBeenCalledOnce()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('is let go of when the call is done', () => {
    const { signal } = new AbortController()
    const add = vi.spyOn(signal, 'addEventListener')
    const remove = vi.spyOn(signal, 'removeEventListener')
    const deadline = new Deadline('it', 1_000, signal)
    const inner = deadline.signal
    deadline.release()
    expect(remove.mock.calls.map(([type, listener]) => [type, listener])).toEqual(
      add.mock.calls.map(([type, listener]) => [type, listener]),
    )
    expect(inner.aborted).toBe(false)
  })
})

test('a thought that fails after the call has ended harms nobody', async () => {
  const deadline = new Deadline('it', 1_000, undefined)
  let fail: ((error: Error) => void) | undefined
  const thinking = deadline.waitForUser(new Promise((_resolve, reject) => (fail = reject)))
  deadline.abort(new Error('over'))
  await expect(thinking).rejects.toThrow('over')
  fail?.(new Error('too late'))
  await expect(deadline.sleep(1)).rejects.toThrow('over')
})

describe('a question in the middle of waiting', () => {
  test('stops the clock until it is answered', async () => {
    const deadline = new Deadline('it', 1_000, undefined)
    const { cancel } = underWay(deadline)
    await vi.advanceTimersByTimeAsync(600)
    const release = deadline.pauseClock()
    await vi.advanceTimersByTimeAsync(5_000)
    release()
    await vi.advanceTimersByTimeAsync(399)
    expect(cancel).not.toHaveBeenCalled()
    // The clock is looked at now and then.
    await vi.advanceTimersByTimeAsync(100)
    expect(cancel).toHaveBeenCalledOnce()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('stops it for as long as any of them is open', async () => {
    const deadline = new Deadline('it', 1_000, undefined)
    const { settle, cancel } = underWay(deadline)
    const releases = [deadline.pauseClock(), deadline.pauseClock()]
    await vi.advanceTimersByTimeAsync(2_000)
    releases[0]?.()
    await vi.advanceTimersByTimeAsync(2_000)
    releases[1]?.()
    expect(cancel).not.toHaveBeenCalled()
    settle('there')
    const { cancel: cancelNext } = underWay(deadline)
    await vi.advanceTimersByTimeAsync(900)
    expect(cancelNext).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(100)
    expect(cancelNext).toHaveBeenCalledOnce()
  })
})
