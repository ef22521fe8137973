// `npm run bench -- tasks`: tasks per second from creation to completion, with a question in between, through the engine, and the
// same SQL statements by hand through the same driver.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { median } from './median.mjs'
import { table } from './table.mjs'
import { postgresSides } from './tasks-postgres.mjs'
import { sqliteSides } from './tasks-sqlite.mjs'

const cases = [
  { atATime: 32, lives: 640 },
  { atATime: 1, lives: 100 },
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
  const results = []
  if (only !== 'sqlite') results.push(...(await benchPostgres(rounds)))
  if (only !== 'postgres') results.push(...(await benchSqlite(rounds)))
  print(results)
  if (quick || only !== undefined) console.log('\nPart of a run: bench/results-tasks.json is left as it was.')
  else recordResults(rounds, results)
}

async function benchPostgres(rounds) {
  // The server runs in a child process, which ends with this one.
  const keeper = fork(new URL('../test/stores/database-keeper.mjs', import.meta.url), { execArgv: [] })
  const [{ url, failed }] = await once(keeper, 'message')
  if (failed !== undefined) throw new Error(failed)
  const sides = await postgresSides(url)
  const measured = []
  for (const { atATime, lives } of cases) {
    const engine = () => perSecond(lives, () => sides.engine(lives, atATime))
    const byHand = () => perSecond(lives, () => sides.byHand(lives, atATime))
    for (let i = 0; i < warmUps; i++) await engine()
    await byHand()
    measured.push(
      await compare({ store: sides.name, atATime, statements: sides.statements(atATime) }, rounds, { engine, byHand }),
    )
  }
  if ((await sides.unfinished()) > 0) throw new Error('By hand, the tasks should be completed.')
  await sides.close()
  keeper.disconnect()
  await once(keeper, 'exit')
  return measured
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

function recordResults(rounds, results) {
  const recorded = {
    date: new Date().toISOString().slice(0, 10),
    node: process.version,
    cpu: cpus()[0].model.trim(),
    cores: cpus().length,
    rounds,
    results,
  }
  writeFileSync(new URL('results-tasks.json', import.meta.url), `${JSON.stringify(recorded, null, 2)}\n`)
}
