// An instance that is killed: whoever waits for it sends its round again, to whichever instance is there.
import type { OnceStore } from 'mcp-rally'
import { MemoryOnceStore } from 'mcp-rally'
import { expect, onTestFinished, test } from 'vitest'
import { Crowd } from './crowd.ts'
import type { FleetOptions } from './fleet.ts'
import { Fleet } from './fleet.ts'

const KEYS = ['a secret of the chaos tests, long enough']
const FLOWS = 60
const STEPS_EACH_SIDE = 40

/** Takes all flows to their question, answers, and kills an instance as soon as it is seen to go on with one. */
async function killed(options: FleetOptions): Promise<{ fleet: Fleet; crowd: Crowd }> {
  const fleet = await Fleet.start(options)
  onTestFinished(() => fleet.stop())
  const crowd = new Crowd(FLOWS, STEPS_EACH_SIDE, fleet.url)
  crowd.begin(FLOWS)
  await crowd.atQuestion()
  crowd.answer(crowd.flows)
  await fleet.seesEffect(0, ({ step }) => step > STEPS_EACH_SIDE)
  await fleet.restart(0, 'SIGKILL')
  return { fleet, crowd }
}

function expectRight(crowd: Crowd): void {
  expect(crowd.errors).toEqual([])
  expect(crowd.wrong).toEqual([])
}

test('the results are right, and only steps of the rounds that were lost are done again', async () => {
  const { fleet, crowd } = await killed({ keys: KEYS, stepMs: 10 })
  await crowd.done()
  await fleet.end()
  expectRight(crowd)
  const lost = new Set(crowd.flows.filter(({ repeats }) => repeats > 0).map(({ id }) => id))
  expect(lost.size).toBeGreaterThan(0)
  expect(lost.size).toBeLessThan(FLOWS)
  expect(fleet.repeated.length).toBeGreaterThan(0)
  expect(fleet.repeated.filter(({ flow, step }) => !lost.has(flow) || step <= STEPS_EACH_SIDE)).toEqual([])
})

test('with a shared OnceStore only steps that were not recorded are done again', async () => {
  const store = new WatchedStore()
  const { fleet, crowd } = await killed({ keys: KEYS, stepMs: 10, store })
  const unrecorded = store.unsettled
  // Nobody renews the claims of the dead one.
  store.now += 31_000
  await crowd.done()
  await fleet.end()
  expectRight(crowd)
  expect(crowd.flows.some(({ repeats }) => repeats > 0)).toBe(true)
  expect(fleet.repeated.filter(({ effect }) => !unrecorded.has(`step:${effect}`))).toEqual([])
  expect(new Set(fleet.effects.map(({ effect }) => effect)).size).toBe(FLOWS * 2 * STEPS_EACH_SIDE)
})

/** The store that the fleet shares, with a clock of the test. */
class WatchedStore implements OnceStore {
  now = 0
  readonly #memory = new MemoryOnceStore(() => this.now)
  readonly #open = new Set<string>()

  /** Keys that are taken and have come to nothing so far. */
  get unsettled(): ReadonlySet<string> {
    return new Set(this.#open)
  }

  claim(...[key, note, leaseMs]: Parameters<OnceStore['claim']>): ReturnType<OnceStore['claim']> {
    this.#open.add(key)
    const claim = this.#memory.claim(key, note, leaseMs)
    if (claim.kind === 'settled') this.#open.delete(key)
    return claim
  }

  renew(...args: Parameters<OnceStore['renew']>): ReturnType<OnceStore['renew']> {
    return this.#memory.renew(...args)
  }

  settle(...args: Parameters<OnceStore['settle']>): ReturnType<OnceStore['settle']> {
    this.#open.delete(args[0])
    return this.#memory.settle(...args)
  }

  release(...args: Parameters<OnceStore['release']>): ReturnType<OnceStore['release']> {
    this.#open.delete(args[0])
    return this.#memory.release(...args)
  }
}
