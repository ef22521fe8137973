// Calls: requests per second of servers.
import { bars } from '../plot.mjs'
import { joined, markdownTable, missing, nameOf, picture, rounded, ratioText } from '../words.mjs'

const setups = {
  rally: 'the built package with its defaults and a given key',
  byHand: '`node:http`, the same JSON, the same amount of state under AES-256-GCM, and nothing else: the limit',
  echo: '`node:http` that parses the body and answers JSON of the same size. It does no work',
  official: 'as its README has it for `node:http`, with its signed `requestState`',
  tuned:
    'the fastest form that we found: JSON Schema built once, the parsed body handed over, no Host or Origin guards',
  v1: 'stateless, JSON responses, `node:http`, the parsed body handed over',
  fastmcp: 'HTTP streaming, stateless, JSON responses',
  mcpUse: 'stateless, which answers JSON; no telemetry; NODE_ENV is production',
}

export function callsPart({ rounds, milliseconds, versions, failures, results }) {
  const pictures = {}
  const shown = ['plain', 'sealed'].map((scenario) => {
    const cases = results.filter((each) => each.scenario === scenario)
    const file = `bench-${scenario}.svg`
    pictures[file] = bars({
      title: `Requests per second, ${scenario} calls`,
      groups: cases.map(({ connections, peers, ratios }) => ({
        name: connectionsText(connections),
        rows: Object.entries(peers).map(([name, { perSecond }]) => ({
          label: nameOf(name),
          value: perSecond,
          text: `${rounded(perSecond)}${name === 'rally' ? '' : `  (Rally has ${ratioText(ratios[`rally/${name}`])})`}`,
          isOurs: name === 'rally',
        })),
      })),
    })
    return joined(picture(file, `Requests per second of ${scenario} calls`), callsTable(cases))
  })
  const text = joined(
    `## Calls

A plain call is a \`tools/call\` that is answered at once. A sealed call asks for a confirmation: the first round is answered with a
question and a sealed state, the second brings both back. Each round counts as a request. Rates are medians of ${rounds} rounds of
${milliseconds / 1000} s. "Rally / this server" is the median of the ratios within the rounds.`,
    ...shown,
    `Each server was set up like this:

${markdownTable(
  ['server', 'version', 'set up'],
  Object.entries(setups).map(([name, how]) => [
    nameOf(name),
    versions[name] ?? (name === 'tuned' ? versions.official : ''),
    how,
  ]),
)}

Official v1, FastMCP and mcp-use speak the revisions of 2025, where requests and responses are smaller. They cannot ask without
a session, so they have no sealed calls.`,
    missing(failures),
  )
  return { text, pictures }
}

function callsTable(cases) {
  const names = Object.keys(cases[0].peers)
  const head = [
    'server',
    ...cases.flatMap(({ connections }) => [connectionsText(connections), 'Rally / this server', 'CPU, µs']),
  ]
  return markdownTable(
    head,
    names.map((name) => [
      nameOf(name),
      cases.flatMap(({ peers, ratios }) => [
        rounded(peers[name].perSecond),
        name === 'rally' ? '' : ratioText(ratios[`rally/${name}`]),
        rounded(peers[name].cpuMicroseconds, 1),
      ]),
    ]),
  )
}

function connectionsText(count) {
  return `${count} ${count === 1 ? 'connection' : 'connections'}`
}
