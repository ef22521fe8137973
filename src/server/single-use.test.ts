import { expect, test } from 'vitest'
import { digest } from '../seal/canonical.ts'
import { MemoryOnceStore } from '../store/memory/once.ts'
import { Usages } from '../store/usage.ts'
import { useCounted } from './single-use.ts'

const OPTIONS = { note: 'note', keepMs: 60_000, gaveUp: () => false }

test('A record counts for its caller, with its bytes in UTF-8', async () => {
  const store = new MemoryOnceStore()
  const seen: { owner: string; bytes: number }[] = []
  const usages = new Usages(
    async () => ({ open: 0, bytes: 0 }),
    (owner, { bytes }) => void seen.push({ owner, bytes }),
    () => 0,
  )
  const record = '€'.repeat(1_000)
  for (const key of ['one', 'two']) {
    await useCounted({ store, usages, principal: 'ann' }, key, OPTIONS, async () => record)
  }
  const owner = digest('ann')
  expect(seen[0]).toEqual({ owner, bytes: 0 })
  expect(seen.at(-1)?.bytes).toBeGreaterThan(3_000)
  expect(store.bytes(owner)).toBeGreaterThan(6_000)
})
