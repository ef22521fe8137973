// From the rounds of a run to its medians and ratios, and from those to the tables it prints.
import { median } from './median.mjs'
import { table } from './table.mjs'

const pairs = [
  ['rally', 'byHand'],
  ['rally', 'echo'],
  ['official', 'echo'],
  ['rally', 'official'],
  ['rally', 'tuned'],
  ['rally', 'v1'],
  ['rally', 'fastmcp'],
  ['rally', 'mcpUse'],
  ['bearer', 'rally'],
]

// `rounds` holds one object per round, from a peer's name to what was measured. A ratio is the median of the ratios
// within each round, whose measurements are neighbours in time, so that what slows the machine slows both.
export function summarize({ scenario, connections, rounds }) {
  const names = Object.keys(rounds[0])
  const ratios = pairs
    .filter((pair) => pair.every((name) => names.includes(name)))
    .map(([one, other]) => {
      const perRound = rounds.map((round) => round[one].perSecond / round[other].perSecond)
      return [`${one}/${other}`, Number(median(perRound).toFixed(3))]
    })
  const peers = names.map((name) => [name, summarizePeer(rounds.map((round) => round[name]))])
  return { scenario, connections, peers: Object.fromEntries(peers), ratios: Object.fromEntries(ratios) }
}

export function printTables(summaries) {
  const names = Object.keys(summaries[0].peers)
  const ratioNames = Object.keys(summaries[0].ratios)
  const columns = (summary, cell) => names.map((name) => cell(summary.peers[name]))

  console.log(
    table(
      ['requests per second', ...names, ...ratioNames],
      summaries.map((summary) => [
        label(summary),
        ...columns(summary, ({ perSecond }) => perSecond.toLocaleString('en')),
        ...ratioNames.map((name) => summary.ratios[name].toFixed(2)),
      ]),
    ),
  )
  console.log()
  console.log(
    table(
      ['server CPU per request, µs', ...names],
      summaries.map((summary) => [label(summary), ...columns(summary, (peer) => peer.cpuMicroseconds.toFixed(1))]),
    ),
  )
  for (const summary of summaries)
    for (const [name, { generatorLoad }] of Object.entries(summary.peers))
      if (generatorLoad > 0.9) console.log(`\nThe generator was the limit of ${name} in ${label(summary)}.`)
}

function label({ scenario, connections }) {
  return `${scenario}, ${connections} connection${connections === 1 ? '' : 's'}`
}

function summarizePeer(measured) {
  const middle = (field) => median(measured.map((one) => one[field]))
  const perSecond = measured.map((one) => Math.round(one.perSecond))
  return {
    perSecond: Math.round(middle('perSecond')),
    slowest: Math.min(...perSecond),
    fastest: Math.max(...perSecond),
    cpuMicroseconds: Number(middle('cpuMicroseconds').toFixed(1)),
    generatorLoad: Number(middle('generatorLoad').toFixed(2)),
    requestBytes: Math.round(middle('requestBytes')),
    responseBytes: Math.round(middle('responseBytes')),
  }
}
