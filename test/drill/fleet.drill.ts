// The fleet drill. RALLY_DRILL_FLOWS sets its size: `.ci/run` makes it smaller.
import { expect, test } from 'vitest'
import { drillFleet } from './fleet-drill.ts'

const FLOWS = Number(process.env['RALLY_DRILL_FLOWS'] ?? 1_500)
const OFFICIAL = Math.round(FLOWS / 5)

test(
  'three instances behind HAProxy are restarted, killed, upgraded and given new keys, and no flow of our client notices',
  { timeout: 900_000 },
  async () => {
    const report = await drillFleet({ own: FLOWS - OFFICIAL, official: OFFICIAL, atOnce: Math.min(40, FLOWS / 5) })
    console.log(report)
    expect(report.errors.own).toEqual([])
    expect(report.done.own).toBe(FLOWS - OFFICIAL)
    expect(report.wrong).toEqual([])
    expect(report.doubled.filter((name) => isOwn(name))).toEqual([])
    expect(report.missing).toEqual([])
    expect(Object.keys(report.versions)).toEqual(['1', '2'])
  },
)

/** Each fifth flow is one of the official client, which has no idempotency key for a call that is lost in its first round. */
function isOwn(name: string): boolean {
  return Number(/\d+/.exec(name)?.[0]) % 5 !== 0
}
