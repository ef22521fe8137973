// The fleet drill: every instance is restarted, three times over, and the keys are rotated, while 200 flows run.
import { expect, onTestFinished, test } from 'vitest'
import { keyIdBytes, keyring } from '../../src/seal/keyring.ts'
import { Crowd } from './crowd.ts'
import { Fleet } from './fleet.ts'

const OLD = 'the old secret of the fleet drill, long enough'
const NEW = 'the new secret of the fleet drill, long enough'

const FLOWS = 200
const SLOTS = [0, 1, 2]
const STEPS_EACH_SIDE = 50
const BATCH = 17

test(
  'a rolling restart of every instance for each phase of a key rotation loses no flow and repeats no effect',
  { timeout: 120_000 },
  async () => {
    const fleet = await Fleet.start({ keys: [OLD], stepMs: 10 })
    onTestFinished(() => fleet.stop())
    const crowd = new Crowd(FLOWS, STEPS_EACH_SIDE, fleet.url)
    const restarted: number[] = []
    /** Restarts an instance as soon as it is seen to run one of these flows. */
    const restart = async (slot: number, keys: string[], flows: ReadonlySet<number>, from: number): Promise<void> => {
      await fleet.seesEffect(slot, ({ flow, step }) => flows.has(flow) && step > from)
      restarted.push(await fleet.restart(slot, 'SIGTERM', keys))
    }

    for (const keys of [
      [OLD, NEW],
      [NEW, OLD],
    ]) {
      for (const slot of SLOTS) await restart(slot, keys, crowd.begin(BATCH), 0)
    }
    crowd.begin(FLOWS)
    await crowd.atQuestion()
    expect(crowd.errors).toEqual([])

    // All flows are open now. The old key may go once no state under it can come any more: in life after the ttl, here
    // after those who hold one have used it.
    const under = (secret: string) => crowd.flows.filter(({ state }) => isUnder(secret, state))
    const [old, young] = [under(OLD), under(NEW)]
    expect(old.length).toBeGreaterThan(0)
    expect(old.length + young.length).toBe(FLOWS)
    crowd.answer(old)
    await crowd.done()
    for (const slot of SLOTS) {
      const third = young.filter((_, index) => index % SLOTS.length === slot)
      await restart(slot, [NEW], crowd.answer(third), STEPS_EACH_SIDE)
    }
    await crowd.done()
    await fleet.end()

    expect(crowd.errors).toEqual([])
    expect(crowd.wrong).toEqual([])
    expect(fleet.repeated).toEqual([])
    expect(fleet.effects).toHaveLength(FLOWS * 2 * STEPS_EACH_SIDE)
    expect(crowd.flows.filter(({ repeats }) => repeats > 0)).toEqual([])
    // Each restart met flows that ran, and handed them over.
    const handingOver = new Set(crowd.flows.flatMap(({ deferredBy }) => deferredBy))
    expect(restarted.filter((port) => !handingOver.has(port))).toEqual([])
    expect(restarted).toHaveLength(9)
    expect(fleet.ends).toEqual(Array.from({ length: 12 }, () => ({ code: null, signal: 'SIGTERM' })))
  },
)

function isUnder(secret: string, state: string): boolean {
  const [, token = ''] = state.split('.')
  return Buffer.from(token, 'base64url')
    .subarray(0, keyIdBytes)
    .equals(keyring([secret]).minting.id)
}
