// Runs the official conformance suite on both sides, or on one: `npm run conformance -- server`, `npm run conformance -- client`,
// with `--scenario <name>` for one scenario only, and `--revision <name>` for one revision only.
// Ends with `N passed, N failed`, and fails when any check is not a plain success.
import { parseArgs } from 'node:util'
import { install, runSuite } from './official.mjs'
import { describeRun, sum } from './report.mjs'
import { clientCommand, startServer } from './under-test.mjs'

const REVISION = '2026-07-28'

/** What is tested, by its name on the command line. */
const SIDES = { server: testServer, client: testClient }

/** The suite and its requirements are pinned, so there are always this many: fewer means that it ended half-way. */
const SERVER_RUNS = [
  { args: ['--suite', 'all', '--spec-version', REVISION], scenarios: 40 },
  { args: ['--requirements', REVISION], scenarios: 50 },
  { args: ['--suite', 'all', '--spec-version', '2025-11-25'], scenarios: 33 },
  { args: ['--suite', 'all', '--spec-version', '2025-06-18'], scenarios: 27 },
  // Each scenario by the latest revision that has it.
  { args: ['--suite', 'all'], scenarios: 65 },
]

/** With the scenarios of authorization, by the client's own code. */
const CLIENT_RUNS = [
  { args: ['--requirements', REVISION], scenarios: 39 },
  { args: ['--suite', 'all', '--spec-version', '2025-11-25'], scenarios: 19 },
  { args: ['--suite', 'all', '--spec-version', '2025-06-18'], scenarios: 5 },
  // Servers of 2025-03-26 are their own authorization servers.
  { args: ['--suite', 'backcompat'], scenarios: 2 },
  // A run of a revision leaves the scenarios of this extension out.
  ...['no-prefetch', 'verify-digest', 'verify-size', 'verify-frontmatter'].map((name) => ({
    args: ['--scenario', `sep-2640-client-${name}`],
    scenarios: 1,
  })),
]

/** All scenarios of a run on the client's side start together, and each has so long from then. */
const CLIENT_TIMEOUT_MS = 120_000

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { scenario: { type: 'string' }, revision: { type: 'string' } },
})
const sides = positionals.length === 0 ? Object.keys(SIDES) : positionals
if (!sides.every((side) => Object.hasOwn(SIDES, side)) || (sides.length !== 1 && values.scenario !== undefined)) {
  const names = Object.keys(SIDES).join(' | ')
  console.error(`Say what to test: npm run conformance -- ${names} [--scenario <name>] [--revision <name>]`)
  process.exit(2)
}

install()
const counts = []
for (const side of sides) counts.push(await SIDES[side](values))
const { passed, failed } = sum(counts)
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1

async function testServer({ scenario, revision }) {
  const runs =
    scenario === undefined
      ? SERVER_RUNS.filter(({ args }) => revision === undefined || args.includes(revision))
      : [{ args: ['--scenario', scenario, ...atRevision(scenario, revision)], scenarios: 1 }]
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

/** Scenarios of extensions belong to no revision. */
function atRevision(scenario, revision = scenario.startsWith('sep-2640-') ? undefined : REVISION) {
  return revision === undefined ? [] : ['--spec-version', revision]
}

async function testClient({ scenario, revision }) {
  const runs =
    scenario === undefined
      ? CLIENT_RUNS.filter(({ args }) => revision === undefined || args.includes(revision))
      : [{ args: ['--scenario', scenario, ...atRevision(scenario, revision)], scenarios: 1 }]
  const how = ['--command', clientCommand(), '--timeout', String(CLIENT_TIMEOUT_MS)]
  const reports = []
  for (const { args, scenarios } of runs) {
    const report = describeRun(await runSuite('client', [...how, ...args]), scenarios)
    console.log(`\nclient ${args.join(' ')}\n\n${report.text}`)
    reports.push(report)
  }
  return sum(reports)
}
