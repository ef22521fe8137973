// `npm run bench`: Rally and the official server against a bare HTTP echo, all in one run on one machine. `npm run bench -- client`
// is another run, of the clients, `npm run bench -- tasks` one of tasks, and `npm run bench -- overload` one past the capacity.
// `npm run bench -- all` measures everything that docs/benchmarks.md shows, and writes that page.
import { existsSync } from 'node:fs'
import { benchAll } from './all/run.mjs'
import { benchBase } from './base.mjs'
import { benchClients } from './client.mjs'
import { importTable, measureImports } from './import.mjs'
import { readOptions } from './options.mjs'
import { benchOverload } from './overload.mjs'
import { printTables, summarize } from './report.mjs'
import { measureServers } from './servers.mjs'
import { benchTasks } from './tasks.mjs'

const [what, ...rest] = process.argv.slice(2)
/** Tasks on PostgreSQL have many cases, and some are slow. */
const longestRun = { tasks: 3_600_000, all: 1_800_000 }[what] ?? 600_000
const runs = { client: benchClients, tasks: benchTasks, base: benchBase, overload: benchOverload, all: benchAll }

// Whatever hangs, the run ends. Its children notice that, and end too.
setTimeout(() => fail(new Error(`not done after ${longestRun / 1000} s`)), longestRun).unref()
process.on('SIGINT', () => fail(new Error('interrupted')))
process.on('SIGTERM', () => fail(new Error('ended')))

try {
  if (what !== undefined && Object.hasOwn(runs, what)) await runs[what](rest)
  else await benchServers(process.argv.slice(2))
} catch (error) {
  fail(error)
}

async function benchServers(args) {
  const options = readOptions(args)
  if (options.peers.includes('rally') && !existsSync(new URL('../dist/node.js', import.meta.url)))
    throw new Error('dist/ is not there: `npm run build`, or leave Rally out with `--peers echo,official`')
  const { cases, failures } = await measureServers(options)
  for (const message of Object.values(failures)) throw new Error(message)
  const names = options.peers.filter((name) => name === 'rally' || name === 'official')
  const imports = await measureImports({ times: options.imports, names })

  printTables(cases.map((each) => summarize(each)))
  if (names.length > 0) console.log(`\n${importTable(imports)}`)
}

function fail(error) {
  console.error(`bench: ${error.message}`)
  process.exit(1)
}
