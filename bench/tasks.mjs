// `npm run bench -- tasks`: tasks per second from creation to completion, with four steps and a question in between, through the engine.
// On PostgreSQL beside others that do the same, on SQLite beside the same SQL statements by hand through the same driver.
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
  const measured = []
  for (const { atATime, lives } of cases) {
    const trace = await sides.record(lives, atATime)
    const engine = async () => {
      const fresh = sides.engine()
      const rate = await perSecond(lives, () => fresh.lives(lives, atATime))
      await fresh.close()
      return rate
    }
    const byHand = async () => {
      const { run, completed } = await sides.byHand(trace)
      const rate = await perSecond(lives, run)
      if (completed() !== lives) throw new Error('By hand, the tasks should be completed.')
      return rate
    }
    for (let i = 0; i < warmUps; i++) await engine()
    await byHand()
    const statements = Math.round(trace.length / lives)
    measured.push(await compare({ store: sides.name, atATime, statements }, rounds, { engine, byHand }))
  }
  sides.close()
  return measured
}

/** Each ratio is the median of the ratios within the rounds. A round measures both sides one after the other, in changing order. */
async function compare(what, rounds, { engine, byHand }) {
  const measured = []
  for (let round = 0; round < rounds; round++) {
    if (round % 2) {
      const one = await byHand()
      measured.push({ byHand: one, engine: await engine() })
    } else {
      const one = await engine()
      measured.push({ engine: one, byHand: await byHand() })
    }
  }
  return {
    ...what,
    enginePerSecond: Math.round(median(measured.map((each) => each.engine))),
    byHandPerSecond: Math.round(median(measured.map((each) => each.byHand))),
    ratio: Number(median(measured.map((each) => each.engine / each.byHand)).toFixed(2)),
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
      ['tasks per second', 'statements', 'engine', 'by hand', 'ratio'],
      results.map(({ store, atATime, statements, enginePerSecond, byHandPerSecond, ratio }) => [
        `${store}, ${atATime} at a time`,
        statements,
        enginePerSecond.toLocaleString('en'),
        byHandPerSecond.toLocaleString('en'),
        ratio.toFixed(2),
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
