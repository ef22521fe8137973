// The figures of the README, as text from what was recorded, between the comments of its two regions.
import { caseOf, markdownTable, mebibytes, nameOf, rounded } from './words.mjs'

const speedRegion = ['<!-- figures: `npm run bench -- all` writes them -->', '<!-- /figures -->']
const besideRegion = ['<!-- beside: `npm run bench -- all` writes it -->', '<!-- /beside -->']

export function withFigures(readme, recorded) {
  if (recorded.calls === undefined) return readme
  return between(between(readme, speedRegion, speed(recorded)), besideRegion, beside(recorded))
}

function between(text, [begin, end], content) {
  const from = text.indexOf(begin)
  const to = text.indexOf(end)
  if (from === -1 || to < from) throw new Error(`README.md must have the comments ${begin} and ${end}`)
  return `${text.slice(0, from + begin.length)}\n\n${content}\n\n${text.slice(to)}`
}

function speed({ calls, clients }) {
  const cases = [
    { title: 'a plain call', scenario: 'plain' },
    { title: 'a confirmation, two sealed rounds', scenario: 'sealed' },
  ]
  const rows = cases.map(({ title, scenario }) => [title, ...ratiosOf(calls, scenario, 32)])
  const pair = clients?.results.find(({ calls: atATime }) => atATime === 32)?.ratios[pairRatio]
  if (pair !== undefined) rows.push(['the same with our client and theirs', '', times(pair)])
  const [plain, sealed] = cases.map(({ scenario }) => ratiosOf(calls, scenario, 1))
  return `${markdownTable(['Rally’s rate, 32 at a time', 'to `node:http` by hand', 'to the official SDK'], rows)}

With one connection: ${plain[0]} by hand and ${plain[1]} the official SDK for a plain call, ${sealed[0]} and ${sealed[1]} for a
confirmation. Official SDK ${calls.versions.official}, Node ${calls.node.slice(1)}, ${calls.cores} cores${trial(calls)}.
[All measurements](docs/benchmarks.md), or \`npm run bench -- all\`.`
}

const pairRatio = 'flows per second, rally pair to official pair'

function ratiosOf(calls, scenario, connections) {
  const { ratios } = caseOf(calls, scenario, connections)
  return [times(ratios['rally/byHand'], 2), times(ratios['rally/official'])]
}

/** The measured rows of the comparison. They have its columns. */
function beside({ calls, start, install }) {
  const peers = ['rally', 'official', 'v1', 'fastmcp', 'mcpUse']
  const sizes = Object.fromEntries(install?.results.map((each) => [each.name, each]) ?? [])
  const rows = [
    ['a plain call', (name) => rateToHand(calls, 'plain', name)],
    ['a confirmation, two sealed rounds', (name) => rateToHand(calls, 'sealed', name)],
    ['time to import', (name) => start?.milliseconds[name] && `${rounded(start.milliseconds[name])} ms`],
    ['installed', (name) => sizes[name] && mebibytes(sizes[name].bytes)],
    ['packages', (name) => sizes[name] && String(sizes[name].packages)],
  ].map(([title, cellOf]) => [title].concat(peers.map((name) => cellOf(name) ?? '–')))
  const titles = ['measured', ...peers.map((name) => `${nameOf(name)} ${calls.versions[name] ?? ''}`.trim())]
  return `${markdownTable(titles, rows)}

The first two rows are requests per second, as multiples of \`node:http\` by hand, 32 connections.${start?.isTrial ? ' Imports were timed on a busy machine.' : ''}`
}

/** Of the official SDK also in the fastest form that we found. */
function rateToHand(calls, scenario, name) {
  const { ratios } = caseOf(calls, scenario, 32)
  const rate = (peer) => {
    const ratio = peer === 'rally' ? 1 : ratios[`rally/${peer}`]
    return ratio && rounded(ratios['rally/byHand'] / ratio, 2)
  }
  return name === 'official' && rate('tuned') ? `${rate(name)}, tuned ${rate('tuned')}` : rate(name)
}

function trial({ isTrial }) {
  return isTrial ? ', a trial on a busy machine' : ''
}

function times(ratio, digits = ratio < 10 ? 1 : 0) {
  return ratio === undefined ? 'not measured' : `${rounded(ratio, digits)} ×`
}
