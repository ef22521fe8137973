// Runs the official conformance suite: `npm run conformance -- server`, with `--scenario <name>` for one scenario only.
// Ends with `N passed, N failed`, and fails when any check is not a plain success.
import { parseArgs } from 'node:util'
import { install, runSuite } from './official.mjs'
import { describeRun, sum } from './report.mjs'
import { startServer } from './under-test.mjs'

const REVISION = '2026-07-28'

/** What is tested, by its name on the command line. */
const SIDES = { server: testServer }

/** The suite and its requirements are pinned, so there are always this many: fewer means that it ended half-way. */
const SERVER_RUNS = [
  { args: ['--suite', 'all', '--spec-version', REVISION], scenarios: 40 },
  { args: ['--requirements', REVISION], scenarios: 50 },
]

const { positionals, values } = parseArgs({ allowPositionals: true, options: { scenario: { type: 'string' } } })
const [side = ''] = positionals
if (positionals.length !== 1 || !Object.hasOwn(SIDES, side)) {
  console.error(`Say what to test: npm run conformance -- ${Object.keys(SIDES).join(' | ')} [--scenario <name>]`)
  process.exit(2)
}

install()
const { passed, failed } = await SIDES[side](values.scenario)
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1

async function testServer(scenario) {
  const runs =
    scenario === undefined
      ? SERVER_RUNS
      : [{ args: ['--scenario', scenario, '--spec-version', REVISION], scenarios: 1 }]
  const server = await startServer()
  const reports = []
  try {
    for (const { args, scenarios } of runs) {
      const report = describeRun(await runSuite('server', ['--url', server.url, ...args]), scenarios)
      console.log(`\n${args.join(' ')}\n\n${report.text}`)
      reports.push(report)
    }
  } finally {
    await server.stop()
  }
  const total = sum(reports)
  if (total.failed > 0 && server.log() !== '') console.log(`The server's log:\n\n${server.log()}`)
  return total
}
