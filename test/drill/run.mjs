// `npm run drill`: the drills at their full size. Those of tasks run against a PostgreSQL of their own or the one that --postgres names.
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'

const USAGE = `Usage: npm run drill -- [--postgres URL [--restart COMMAND]] [--minutes N] [NAME...]

  --postgres URL       a database that the drill may fill; by default it brings its own
  --restart COMMAND    restarts that server; by default its connections are ended instead
  --minutes N          repeats the kills on PostgreSQL for so long; by default they run once
  NAME                 only the drills whose file has this in its name: attacks, callers, fleet (needs HAProxy), followers,
                       kill, mixed (builds an earlier commit), parked, plans (a million rows), poison, pooler (needs pgbouncer),
                       short (small ones)`

const root = new URL('../..', import.meta.url)

try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { postgres: { type: 'string' }, restart: { type: 'string' }, minutes: { type: 'string' } },
  })
  const { postgres, restart, minutes } = values
  if (restart !== undefined && postgres === undefined) throw new Error('--restart goes with --postgres.')
  if (postgres !== undefined && !/^postgres(ql)?:\/\//.test(postgres))
    throw new Error('--postgres takes postgres://...')
  if (minutes !== undefined && !/^\d+$/.test(minutes)) throw new Error('--minutes takes a whole number.')
  const { status, error } = spawnSync(
    process.execPath,
    ['node_modules/vitest/vitest.mjs', 'run', '--config', 'test/drill/vitest.config.ts', ...positionals],
    {
      cwd: root,
      stdio: 'inherit',
      env: {
        ...process.env,
        ...(postgres !== undefined && { RALLY_TEST_POSTGRES: postgres }),
        ...(minutes !== undefined && { RALLY_DRILL_MINUTES: minutes }),
        ...(restart !== undefined && { RALLY_DRILL_RESTART: restart }),
      },
    },
  )
  if (error) throw error
  process.exitCode = status ?? 1
} catch (error) {
  console.error(`${error.message}\n${USAGE}`)
  process.exitCode = 2
}
