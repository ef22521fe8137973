import { afterEach, describe, expect, test, vi } from 'vitest'
import { gate, microtasks } from '../testing/manual-scheduler.ts'
import type { OnceStore } from '../store/once.ts'
import { MemoryOnceStore } from '../store/memory/once.ts'
import { useOnce } from '../store/once.ts'
import { stepOnce } from './step.ts'

const OPTIONS = { note: 'same', keepMs: 60_000, gaveUp: () => false }
const never = (): boolean => false

afterEach(() => void vi.useRealTimers())

describe('useOnce', () => {
  test('one of many does it, and the others get what it came to', async () => {
    const store = new MemoryOnceStore()
    let times = 0
    const tries = Array.from({ length: 20 }, () =>
      useOnce(store, 'k', OPTIONS, async () => {
        await microtasks()
        return `done ${(times += 1)}`
      }),
    )
    expect(new Set((await Promise.all(tries)).map((used) => JSON.stringify(used)))).toEqual(
      new Set(['{"record":"done 1"}']),
    )
    expect(times).toBe(1)
  })

  test('another try is refused, while the first one runs and after', async () => {
    const store = new MemoryOnceStore()
    const goOn = gate<string>()
    const first = useOnce(store, 'k', OPTIONS, () => goOn.promise)
    const other = (): Promise<unknown> => useOnce(store, 'k', { ...OPTIONS, note: 'other' }, async () => 'other')
    expect(await other()).toBe('refused')
    goOn.open('first')
    expect(await first).toEqual({ record: 'first' })
    expect(await other()).toBe('refused')
  })

  test.each([
    { ending: 'threw', end: () => Promise.reject(new Error('no')) },
    { ending: 'came to nothing', end: () => Promise.resolve(undefined) },
  ])('the key is free again after a try that $ending', async ({ end }) => {
    const store = new MemoryOnceStore()
    await useOnce(store, 'k', OPTIONS, end).catch(() => {})
    expect(await useOnce(store, 'k', OPTIONS, async () => 'done')).toEqual({ record: 'done' })
  })

  test('a try that waits for another one takes over when that one gives up', async () => {
    const store = new MemoryOnceStore()
    const goOn = gate<undefined>()
    const first = useOnce(store, 'k', OPTIONS, () => goOn.promise)
    const second = useOnce(store, 'k', OPTIONS, async () => 'second')
    goOn.open(undefined)
    expect(await first).toBeUndefined()
    expect(await second).toEqual({ record: 'second' })
  })

  test('a try that was given up waits for no other one any longer, and does not begin', async () => {
    const store = new MemoryOnceStore()
    const goOn = gate<undefined>()
    const run = vi.fn<() => Promise<string>>(async () => 'ran')
    let gaveUp = false
    const first = useOnce(store, 'k', OPTIONS, () => goOn.promise)
    const second = useOnce(store, 'k', { ...OPTIONS, gaveUp: () => gaveUp }, run)
    await microtasks()
    gaveUp = true
    expect(await second).toBeUndefined()
    goOn.open(undefined)
    expect(await first).toBeUndefined()
    expect(run).not.toHaveBeenCalled()
  })

  test('a try that was given up while the store was asked does not begin, and leaves the key free', async () => {
    const store = new MemoryOnceStore()
    const answers = gate()
    const run = vi.fn<() => Promise<string>>(async () => 'ran')
    let gaveUp = false
    const used = useOnce(slowly(store, answers.promise), 'k', { ...OPTIONS, gaveUp: () => gaveUp }, run)
    gaveUp = true
    answers.open()
    expect(await used).toBeUndefined()
    expect(run).not.toHaveBeenCalled()
    expect(store.claim('k', 'n', 1)).toMatchObject({ kind: 'yours' })
  })

  test('a claim is renewed for as long as the try takes, and no longer', async () => {
    vi.useFakeTimers()
    const store = new MemoryOnceStore(Date.now)
    const renew = vi.spyOn(store, 'renew')
    const goOn = gate<string>()
    const used = useOnce(store, 'k', OPTIONS, () => goOn.promise)
    await vi.advanceTimersByTimeAsync(300_000)
    expect(store.claim('k', 'n', 1)).toMatchObject({ kind: 'held' })
    goOn.open('done')
    expect(await used).toEqual({ record: 'done' })
    renew.mockClear()
    await vi.advanceTimersByTimeAsync(59_000)
    expect(renew).not.toHaveBeenCalled()
    expect(store.claim('k', 'n', 1)).toMatchObject({ kind: 'settled', record: 'done' })
  })

  test('a store that fails to renew or release harms neither the process nor the outcome', async () => {
    vi.useFakeTimers()
    const store = new FailingStore()
    const goOn = gate<string>()
    const used = useOnce(store, 'k', OPTIONS, () => goOn.promise)
    await vi.advanceTimersByTimeAsync(30_000)
    expect(store.failures).toBe(3)
    goOn.open('done')
    expect(await used).toEqual({ record: 'done' })
    await expect(useOnce(store, 'l', OPTIONS, () => Promise.reject(new Error('the reason')))).rejects.toThrow(
      'the reason',
    )
    expect(store.failures).toBe(4)
  })

  test('what was done counts for its caller also where the claim had lapsed meanwhile', async () => {
    let now = 0
    const store = new MemoryOnceStore(() => now)
    const goOn = gate<string>()
    const stalled = useOnce(store, 'k', OPTIONS, () => goOn.promise)
    now += 31_000
    expect(await useOnce(store, 'k', OPTIONS, async () => 'second')).toEqual({ record: 'second' })
    goOn.open('first')
    expect(await stalled).toEqual({ record: 'first' })
    expect(store.claim('k', 'n', 1)).toMatchObject({ record: 'second' })
  })
})

/** A pass that goes on, and that no failure of a store ends. */
const PASS = {
  gaveUp: never,
  fail: async (error: unknown) => {
    throw error
  },
}

describe('stepOnce', () => {
  test.each([
    { what: 'nothing', value: undefined },
    { what: 'null', value: null },
    { what: 'an empty text', value: '' },
    { what: 'zero', value: 0 },
    { what: 'false', value: false },
    { what: 'an object', value: { a: [1, null, 'b'] } },
  ])('gives $what again as it was', async ({ value }) => {
    const store = new MemoryOnceStore()
    const run = vi.fn<() => unknown>(() => value)
    expect(await stepOnce(store, 'k', PASS, run)).toEqual(value)
    expect(await stepOnce(store, 'k', PASS, run)).toEqual(value)
    expect(run).toHaveBeenCalledOnce()
  })

  test('leaves what is no JSON to the pass, and the key free', async () => {
    const store = new MemoryOnceStore()
    const map = new Map()
    expect(await stepOnce(store, 'k', PASS, () => map)).toBe(map)
    expect(await stepOnce(store, 'k', PASS, () => 'better')).toBe('better')
  })
})

describe('MemoryOnceStore', () => {
  test('forgets what has lapsed, also behind what is kept for longer', () => {
    let now = 0
    const store = new MemoryOnceStore(() => now)
    const settle = (key: string, keepMs: number): void => {
      const claim = store.claim(key, 'n', 30_000)
      if (claim.kind === 'yours') store.settle(key, claim.fence, 'x', keepMs)
    }
    for (let i = 0; i < 10; i += 1) settle(`kept[${i}]`, 86_400_000)
    for (let i = 0; i < 1_000; i += 1) {
      now += 1_000
      settle(`k[${i}]`, 10_000)
    }
    // The ten that are kept, the ten or so whose time has not come, and those that the walk has yet to come by.
    expect(store.size).toBeLessThan(40)
    expect(store.claim('kept[0]', 'n', 1)).toMatchObject({ kind: 'settled' })
  })
})

/** A store whose answers to claims take a while. */
function slowly(store: OnceStore, answers: Promise<void>): OnceStore {
  return {
    claim: (key, note, leaseMs) => answers.then(() => store.claim(key, note, leaseMs)),
    renew: (key, fence, leaseMs) => store.renew(key, fence, leaseMs),
    settle: (key, fence, record, keepMs) => store.settle(key, fence, record, keepMs),
    release: (key, fence) => store.release(key, fence),
  }
}

class FailingStore extends MemoryOnceStore {
  failures = 0

  override renew(): boolean {
    this.failures += 1
    throw new Error('the store is down')
  }

  override release(): void {
    this.failures += 1
    throw new Error('the store is down')
  }
}
