// `npm run bench -- tasks`: tasks per second from creation to completion, with four steps and a question in between, through the engine.
// On PostgreSQL beside others that do the same, on both stores beside the same SQL statements by hand through the same driver.
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { circumstances } from './circumstances.mjs'
import { median } from './median.mjs'
import { benchPostgres, peerVersions, print as printPostgres } from './postgres/run.mjs'
import { table } from './table.mjs'
import { sqliteSides } from './tasks-sqlite.mjs'

const cases = [
  { atATime: 32, lives: 2560 },
  { atATime: 1, lives: 640 },
]
/** Runs before the measurement, until the engine's code is compiled. */
const warmUps = 4

export async function benchTasks(args) {
  const { values } = parseArgs({
    args,
    options: { quick: { type: 'boolean', default: false }, only: { type: 'string' } },
  })
  const { quick, only } = values
  if (only !== undefined && !['postgres', 'sqlite'].includes(only)) throw new Error('--only takes postgres or sqlite')
  const rounds = quick ? 3 : 9
  const results = {}
  if (only !== 'sqlite') {
    const where = circumstances()
    const measured = await benchPostgres({ rounds: quick ? 1 : 5, milliseconds: quick ? 1000 : 2000 })
    printPostgres(measured)
    results.postgres = { ...where, ...peerVersions(), cases: measured }
  }
  if (only !== 'postgres') {
    const where = circumstances()
    const measured = await benchSqlite(rounds)
    print(measured)
    results.sqlite = { ...where, cases: measured }
  }
  if (quick) console.log('\nPart of a run: bench/results-tasks.json is left as it was.')
  else recordResults(results)
}

async function benchSqlite(rounds) {
  const sides = sqliteSides()
  const oneByOne = await repetition(sides, 640, 1)
  const measured = []
  for (const { atATime, lives } of cases) {
    const engine = async () => {
      const fresh = sides.engine()
      const rate = await perSecond(lives, () => fresh.lives(lives, atATime))
      await fresh.close()
      return rate
    }
    const replay = atATime === 1 ? oneByOne : await repetition(sides, lives, atATime)
    for (let i = 0; i < warmUps; i++) await engine()
    await oneByOne.rate()
    await replay.rate()
    const rates = { engine, byHand: oneByOne.rate, replay: replay.rate }
    measured.push(await compare({ store: sides.name, atATime, statements: replay.statements }, rounds, rates))
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

function print(results) {
  console.log(
    table(
      ['tasks per second', 'statements', 'engine', 'by hand', 'ratio', 'same run', 'ratio'],
      results.map(({ store, atATime, statements, ratio, replayRatio, ...rates }) => [
        `${store}, ${atATime} at a time`,
        statements,
        rates.enginePerSecond.toLocaleString('en'),
        rates.byHandPerSecond.toLocaleString('en'),
        ratio.toFixed(2),
        rates.replayPerSecond.toLocaleString('en'),
        replayRatio.toFixed(2),
      ]),
    ),
  )
}

/** Replaces what was measured, and keeps the results of the other store. */
function recordResults(results) {
  const file = new URL('results-tasks.json', import.meta.url)
  const { postgres, sqlite } = JSON.parse(readFileSync(file, 'utf8'))
  writeFileSync(file, `${JSON.stringify({ postgres, sqlite, ...results }, null, 2)}\n`)
}
