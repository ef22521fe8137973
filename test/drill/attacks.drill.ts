// Each attack on a server with a heap of 256 MB: it lives, answers another caller meanwhile, and has its memory back after a minute.
import { expect, test } from 'vitest'
import type { Attack } from '../attack/attacks.ts'
import { ATTACKS } from '../attack/attacks.ts'
import { expectServed, Target } from '../attack/target.ts'

const QUIET_MS = 60_000
/** Code that was compiled, and buffers that are used again. */
const MOST_MB = 12

test('every attack is survived', { timeout: 1_200_000 }, async () => {
  const attacked: Attacked[] = []
  for (const attack of ATTACKS) {
    const target = await Target.start(attack.serve, attack.app)
    const began = performance.now()
    const outcome = await underAttack(target, attack)
    const seconds = (performance.now() - began) / 1_000
    attacked.push({ attack, target, ...outcome, seconds, peak: await target.peak() })
    target.disconnectAll()
  }
  await new Promise((resolve) => setTimeout(resolve, QUIET_MS))
  console.log('| attack | before | memory peak | memory after | others served | status | time |')
  console.log('| --- | --- | --- | --- | --- | --- | --- |')
  for (const { attack, target, seen, served, slowestMs, seconds, peak } of attacked) {
    const after = await target.growth()
    const memory = `+${peak.toFixed(0)} MB | ${after < 0 ? '' : '+'}${after.toFixed(1)} MB`
    const others = `${served}, in ${slowestMs.toFixed(0)} ms at most`
    console.log(
      `| ${attack.name} | ${attack.before} | ${memory} | ${others} | ${counted(seen)} | ${seconds.toFixed(1)} s |`,
    )
    expect.soft(served, attack.name).toBeGreaterThan(0)
    expect.soft(after, attack.name).toBeLessThan(MOST_MB + (attack.storesMb ?? 0))
    await expectServed(target)
  }
})

interface Attacked extends Outcome {
  readonly attack: Attack
  readonly target: Target
  readonly seconds: number
  readonly peak: number
}

interface Outcome {
  readonly seen: readonly (string | number)[]
  readonly served: number
  readonly slowestMs: number
}

/** Another caller is served all the time. One that is told to come back later does so. */
async function underAttack(target: Target, attack: Attack): Promise<Outcome> {
  const over = new AbortController()
  const attacking = attack.run(target).finally(() => over.abort())
  attacking.catch(() => {})
  let served = 0
  let slowestMs = 0
  while (!over.signal.aborted) {
    const asked = performance.now()
    const isServed = await expectServed(target).then(
      () => true,
      () => false,
    )
    if (isServed) {
      served += 1
      slowestMs = Math.max(slowestMs, performance.now() - asked)
    }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return { seen: await attacking, served, slowestMs }
}

function counted(seen: readonly (string | number)[]): string {
  const counts = new Map<string | number, number>()
  for (const each of seen) counts.set(each, (counts.get(each) ?? 0) + 1)
  return [...counts].map(([what, count]) => `${what} x ${count}`).join(', ')
}
