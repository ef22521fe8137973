// docs/benchmarks.md and its pictures, as text from what was recorded. Nothing here measures, so that a test can compare the files with
// the record. readme.mjs does the same for the README.
import { callsPart } from './parts/calls.mjs'
import { clientsPart } from './parts/clients.mjs'
import { journalPart, memoryPart } from './parts/cost.mjs'
import { latencyPart } from './parts/latency.mjs'
import { startPart } from './parts/size.mjs'
import { tasksPart } from './parts/tasks.mjs'
import { caseOf, markdownTable } from './words.mjs'

/** `recorded` is bench/results-all.json, `tasks` bench/results-tasks.json. A section without data is left out. */
export function pageOf(recorded, tasks) {
  const { calls, clients, journal, memory, latency, start, install } = recorded
  const tasksShown = tasksPart(tasks)
  const shown = [
    calls && callsPart(calls),
    clients && clientsPart(clients),
    journal && journalPart(journal),
    memory && memoryPart(memory),
    latency && latencyPart(latency),
    (start || install) && startPart(start, install),
    tasksShown,
  ].filter((part) => part !== undefined)
  const page = [
    '# Benchmarks',
    `\`npm run bench -- all\` measures everything here except tasks, in about ten minutes, and writes this page and its plots from what it
recorded in [bench/results-all.json](../bench/results-all.json). \`npm run bench -- tasks\` measures tasks, and
\`npm run bench -- all --only page\` writes them into this page. [bench/](../bench/README.md) says how each number is measured.

Compare ratios, and only within a section: its peers were measured in one run, in turn. Rates depend on the machine and on its
other work.`,
    circumstances(tasksShown ? { ...recorded, tasks: tasks.postgres } : recorded),
    goals(recorded),
    ...shown.map(({ text }) => text),
  ]
  return {
    page: `${page.filter((part) => part !== undefined).join('\n\n')}\n`,
    pictures: Object.assign({}, ...shown.map(({ pictures }) => pictures)),
  }
}

/** What we want to hold, and whether it does. */
function goals({ calls }) {
  if (calls === undefined) return undefined
  const rows = ['plain', 'sealed'].flatMap((scenario) =>
    [
      { connections: 32, least: 1 },
      { connections: 1, least: 0.9 },
    ].map(({ connections, least }) => {
      const ratio = caseOf(calls, scenario, connections)?.ratios['rally/byHand']
      const holds = ratio === undefined ? 'not measured' : ratio >= least ? 'yes' : '**no**'
      const title = `${scenario} calls, ${connections} ${connections === 1 ? 'connection' : 'connections'}`
      return [title, `${least.toFixed(1)} of by hand`, ratio === undefined ? '' : ratio.toFixed(2), holds]
    }),
  )
  return `## Goals

${markdownTable(['goal', 'at least', 'measured', 'holds'], rows)}`
}

function circumstances(recorded) {
  const rows = Object.entries(recorded).map(([name, { date, commit, node, cpu, cores, load, isTrial }]) => [
    name,
    isTrial ? `${date}, a trial` : date,
    commit ? `\`${commit}\`` : 'not recorded',
    node.slice(1),
    `${cores} × ${cpu}`,
    load?.toFixed(1) ?? 'not recorded',
  ])
  return `${markdownTable(['section', 'measured on', 'at commit', 'Node', 'CPU', 'load before'], rows)}

The load is the average of the minute before the section began. Above about 0.5 other work disturbed it.`
}
