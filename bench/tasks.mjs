// `npm run bench -- tasks`: tasks per second from creation to completion, with four steps and a question in between, through the engine.
// On PostgreSQL beside others that do the same, on both stores beside the same SQL statements by hand through the same driver.
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { startChild } from './child.mjs'
import { circumstances } from './circumstances.mjs'
import { benchPostgres, install, peerNode, peerVersions, print as printPostgres } from './postgres/run.mjs'
import { table } from './table.mjs'

const SQLITE_LIMIT_MS = 600_000

export async function benchTasks(args) {
  const { values } = parseArgs({
    args,
    options: { quick: { type: 'boolean', default: false }, only: { type: 'string' } },
  })
  const { quick, only } = values
  if (only !== undefined && !['postgres', 'sqlite'].includes(only)) throw new Error('--only takes postgres or sqlite')
  install()
  const results = {}
  if (only !== 'sqlite') {
    const where = circumstances()
    const measured = await benchPostgres({ rounds: quick ? 1 : 5, milliseconds: quick ? 1000 : 2000 })
    printPostgres(measured)
    results.postgres = { ...where, ...peerVersions(), cases: measured }
  }
  if (only !== 'postgres') {
    const where = circumstances()
    const measured = await benchSqlite(quick ? 3 : 9)
    printSqlite(measured)
    results.sqlite = { ...where, cases: measured }
  }
  if (quick) console.log('\nPart of a run: bench/results-tasks.json is left as it was.')
  else recordResults(results)
}

/** In the Node of the peers on PostgreSQL, which has a SQLite of its own, and in this one. */
async function benchSqlite(rounds) {
  const measured = []
  for (const path of new Set([peerNode(), process.execPath])) {
    const child = startChild('SQLite', new URL('sqlite/run.mjs', import.meta.url), {}, path)
    const { node, cases } = await child.ask({ rounds }, SQLITE_LIMIT_MS)
    for (const each of cases) measured.push({ node, ...each })
    child.stop()
  }
  return measured
}

function printSqlite(cases) {
  console.log(
    table(
      ['tasks per second', 'statements', 'engine', 'by hand', 'ratio', 'same run', 'ratio'],
      cases.map(({ node, driver, atATime, statements, ratio, replayRatio, ...rates }) => [
        `${driver} in Node ${node.slice(1)}, ${atATime} at a time`,
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
