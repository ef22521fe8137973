// Clients: flows per second of pairs of client and server.
import { bars } from '../plot.mjs'
import { joined, markdownTable, picture, ratioText, rounded } from '../words.mjs'

export function clientsPart({ rounds, milliseconds, versions, results }) {
  const file = 'bench-clients.svg'
  const rows = results.flatMap(({ calls, pairings }) =>
    Object.entries(pairings).map(([name, { flowsPerSecond, clientCpuMicroseconds }]) => [
      `${name}, ${calls} at a time`,
      rounded(flowsPerSecond),
      rounded(clientCpuMicroseconds, 1),
    ]),
  )
  const ratios = results.flatMap(({ calls, ratios: all }) =>
    Object.entries(all).map(([name, ratio]) => `- ${calls} at a time, ${name}: ${ratioText(ratio)}`),
  )
  return {
    pictures: {
      [file]: bars({
        title: 'Flows per second',
        groups: results.map(({ calls, pairings }) => ({
          name: `${calls} at a time`,
          rows: Object.entries(pairings).map(([name, { flowsPerSecond }]) => ({
            label: name.replace(/ client, (\w+) server/, ' → $1'),
            value: flowsPerSecond,
            text: rounded(flowsPerSecond),
            isOurs: name === 'rally client, rally server',
          })),
        })),
      }),
    },
    text: joined(
      `## Clients

A flow is one call of the tool that asks: two rounds, with a form in between that is answered at once. The official client is
${versions.official}. Medians of ${rounds} rounds of ${milliseconds / 1000} s.`,
      picture(file, 'Flows per second of pairs of client and server'),
      markdownTable(['pair', 'flows per second', 'client CPU per flow, µs'], rows),
      ratios.join('\n'),
    ),
  }
}
