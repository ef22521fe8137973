// Tasks per second beside DBOS and others, from another record than the rest.
import { bars } from '../plot.mjs'
import { joined, markdownTable, nameOf, picture, ratioText, rounded } from '../words.mjs'

/** Cases with several peers, DBOS among them. Other measurements of tasks are not for this page. */
export function tasksPart(tasks) {
  const cases = (tasks?.postgres?.cases ?? []).filter(({ peers }) => peers?.dbos !== undefined)
  if (cases.length === 0) return undefined
  // An earlier commit of ours is of interest only to those who change the code.
  const names = Object.keys(cases[0].peers).filter((name) => name !== 'before')
  const others = names.filter((name) => name !== 'rally')
  const file = 'bench-tasks.svg'
  return {
    pictures: {
      [file]: bars({
        title: 'Tasks per second on PostgreSQL, one process',
        groups: cases
          .filter(({ processes }) => processes === 1)
          .map((each) => ({
            name: `${each.inFlight} in flight`,
            rows: names.map((name) => ({
              label: nameOf(name),
              value: each.peers[name].perSecond,
              text: rounded(each.peers[name].perSecond),
              isOurs: name === 'rally',
            })),
          })),
      }),
    },
    text: joined(
      `## Tasks

A task takes two steps, asks, is answered, takes two more steps and completes, on PostgreSQL. \`npm run bench -- tasks\` measures it, and
[bench/](../bench/README.md#postgresql) says how. The processes share the tasks in flight, and each may work on 256 at a time
(\`tasks.concurrency\`, 32 by default). graphile-worker does less than the others: it records no step, no question and no result. "Batched"
is graphile-worker with the settings that its documentation recommends for many short jobs.${versionsText(tasks.postgres)}`,
      picture(file, 'Tasks per second of one process, beside others'),
      markdownTable(
        ['case', 'Rally per second', ...others.map((name) => `Rally / ${nameOf(name)}`)],
        cases.map((each) => [
          title(each),
          rounded(each.peers.rally.perSecond),
          others.map((name) =>
            ratioText(each.peers[name].ratio ?? each.peers.rally.perSecond / each.peers[name].perSecond),
          ),
        ]),
      ),
      costs(cases),
      sqlite(tasks.sqlite),
    ),
  }
}

/** Records of earlier commits have no driver. */
function sqlite(recorded) {
  const cases = (recorded?.cases ?? []).filter(({ driver }) => driver !== undefined)
  if (cases.length === 0) return undefined
  return `The same on SQLite, with \`synchronous = full\`. "By hand" are the statements of one task after the other, through the same driver.
"Same run" are the statements of this very run, with the transactions that its tasks share, and without tasks, requests and handlers:

${markdownTable(
  ['driver', 'in flight', 'Rally per second', 'Rally / by hand', 'Rally / same run'],
  cases.map(({ node, driver, atATime, enginePerSecond, ratio, replayRatio }) => [
    `${driver}, Node ${node.slice(1)}`,
    rounded(atATime),
    rounded(enginePerSecond),
    ratioText(ratio),
    ratioText(replayRatio),
  ]),
)}`
}

function versionsText({ versions }) {
  return versions ? ` DBOS is ${versions.dbos}, graphile-worker ${versions.graphile}.` : ''
}

/** Only runs with one process count these. */
function costs(cases) {
  const counted = cases.filter(({ peers }) => peers.rally.cost !== undefined)
  if (counted.length === 0) return undefined
  return `Statements, commits and bytes of the write-ahead log (WAL) for each task of Rally. Tasks that run at the same time share statements:

${markdownTable(
  ['case', 'statements', 'commits', 'WAL bytes'],
  counted.map(({ peers: { rally }, ...each }) => [
    title(each),
    rounded(rally.cost.statements, 2),
    rounded(rally.cost.commits, 2),
    rounded(rally.cost.walBytes),
  ]),
)}`
}

function title({ processes, inFlight }) {
  return `${processes} ${processes === 1 ? 'process' : 'processes'}, ${inFlight} in flight`
}
