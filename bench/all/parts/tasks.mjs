// Tasks per second beside DBOS and others, from another record than the rest.
import { bars } from '../plot.mjs'
import { joined, markdownTable, nameOf, picture, ratioText, rounded } from '../words.mjs'

/** Cases with several peers, DBOS among them. Other measurements of tasks are not for this page. */
export function tasksPart(tasks) {
  const cases = (tasks?.postgres?.cases ?? []).filter(({ peers }) => peers?.dbos !== undefined)
  if (cases.length === 0) return undefined
  const names = Object.keys(cases[0].peers)
  const others = names.filter((name) => name !== 'rally')
  const file = 'bench-tasks.svg'
  return {
    pictures: {
      [file]: bars({
        title: 'Tasks per second on PostgreSQL',
        groups: cases.map((each) => ({
          name: title(each),
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
[bench/](../bench/README.md#tasks) says how. The other columns are Rally's rate to theirs.`,
      picture(file, 'Tasks per second beside others'),
      markdownTable(
        ['case', 'Rally per second', ...others.map((name) => `to ${nameOf(name)}`)],
        cases.map((each) => [
          title(each),
          rounded(each.peers.rally.perSecond),
          others.map((name) =>
            ratioText(each.peers[name].ratio ?? each.peers.rally.perSecond / each.peers[name].perSecond),
          ),
        ]),
      ),
    ),
  }
}

function title({ processes, inFlight }) {
  return `${processes} ${processes === 1 ? 'process' : 'processes'}, ${inFlight} in flight`
}
