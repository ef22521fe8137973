// Tasks per second on SQLite beside the same SQL by hand, through the same driver. A process of its own, so that it can run in a Node with
// `node:sqlite` and in one without. It is told how many rounds to run, and sends what it measured.
import { median } from '../median.mjs'
import { sqliteSides } from './sides.mjs'

const CASES = [
  { atATime: 32, lives: 2560 },
  { atATime: 1, lives: 640 },
]
/** Runs before the measurement, until the engine's code is compiled. */
const WARM_UPS = 8

process.on('disconnect', () => process.exit())
process.on('message', async ({ rounds }) => {
  try {
    process.send({ node: process.version, cases: await measure(rounds) })
  } catch (error) {
    process.send({ error: String(error?.stack ?? error) })
  }
})

async function measure(rounds) {
  const sides = sqliteSides()
  const oneByOne = await repetition(sides, 640, 1)
  const measured = []
  for (const { atATime, lives } of CASES) {
    const engine = async () => {
      const fresh = sides.engine()
      const rate = await perSecond(lives, () => fresh.lives(lives, atATime))
      await fresh.close()
      return rate
    }
    const replay = atATime === 1 ? oneByOne : await repetition(sides, lives, atATime)
    for (let i = 0; i < WARM_UPS; i++) await engine()
    await oneByOne.rate()
    await replay.rate()
    const rates = { engine, byHand: oneByOne.rate, replay: replay.rate }
    measured.push(await compare({ driver: sides.driver, atATime, statements: replay.statements }, rounds, rates))
  }
  sides.close()
  return measured
}

/** What a run of the engine does on the connection, to be repeated by hand. */
async function repetition(sides, lives, atATime) {
  const trace = await sides.record(lives, atATime)
  const rate = async () => {
    const { run, completed } = await sides.byHand(trace)
    const measured = await perSecond(lives, run)
    if (completed() !== lives) throw new Error('By hand, the tasks should be completed.')
    return measured
  }
  return { statements: Math.round(trace.length / lives), rate }
}

/** Each ratio is the median of the ratios within the rounds. A round measures all sides one after the other, in changing order. */
async function compare(what, rounds, sides) {
  const measured = []
  for (let round = 0; round < rounds; round++) {
    const names = Object.keys(sides)
    const rates = {}
    for (const name of round % 2 ? names.toReversed() : names) rates[name] = await sides[name]()
    measured.push(rates)
  }
  const perSecondOf = (name) => Math.round(median(measured.map((each) => each[name])))
  const ratioTo = (name) => Number(median(measured.map((each) => each.engine / each[name])).toFixed(2))
  return {
    ...what,
    enginePerSecond: perSecondOf('engine'),
    byHandPerSecond: perSecondOf('byHand'),
    replayPerSecond: perSecondOf('replay'),
    ratio: ratioTo('byHand'),
    replayRatio: ratioTo('replay'),
  }
}

async function perSecond(lives, run) {
  const began = performance.now()
  await run()
  return (lives * 1000) / (performance.now() - began)
}
