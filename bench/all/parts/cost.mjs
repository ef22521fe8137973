// What flows cost: time and bytes as their journals grow, and memory while users think.
import { lines } from '../plot.mjs'
import { joined, markdownTable, missing, nameOf, picture, rounded } from '../words.mjs'

/** The heap of a server that holds nothing differs by as much from one collection to the next. */
const noise = 250
const waits = { sealed: 'sealed state', session: 'session of 2025, waiting' }

export function journalPart({ results }) {
  const kinds = ['answers', 'steps']
  const of = (kind) => results.filter((each) => each.kind === kind)
  const series = (field) =>
    kinds.map((kind) => ({ label: kind, points: of(kind).map((each) => [each.entries, each[field]]) }))
  const slope = (kind, field) => {
    const [first, last] = [of(kind)[0], of(kind).at(-1)]
    return (last[field] - first[field]) / (last.entries - first.entries)
  }
  const each = (kind) =>
    `${rounded(slope(kind, 'cpuMicroseconds'), 1)} µs and ${rounded(slope(kind, 'tokenBytes'))} bytes`
  return {
    pictures: {
      'bench-journal-cpu.svg': lines({
        title: 'CPU time of one round',
        x: 'entries in the journal',
        y: 'µs',
        series: series('cpuMicroseconds'),
      }),
      'bench-journal-token.svg': lines({
        title: 'Size of the sealed state',
        x: 'entries in the journal',
        y: 'bytes',
        series: series('tokenBytes'),
      }),
    },
    text: joined(
      `## Growing journals

A round opens the state, replays the handler over its journal, takes one answer, asks again and seals. This is the CPU time of that
round in the process, without a network. A journal has answers (of a form with one boolean) or results of steps (of two
fields). Each answer adds about ${each('answers')} to a round, each step ${each('steps')}.`,
      picture('bench-journal-cpu.svg', 'CPU time of a round over the entries of its journal'),
      picture('bench-journal-token.svg', 'Size of the state over the entries of its journal'),
      markdownTable(
        ['entries', ...kinds.flatMap((kind) => [`${kind}, µs`, `${kind}, bytes`])],
        of('answers').map(({ entries }, index) => [
          String(entries),
          kinds.flatMap((kind) => [rounded(of(kind)[index].cpuMicroseconds), rounded(of(kind)[index].tokenBytes)]),
        ]),
      ),
    ),
  }
}

export function memoryPart({ failures, results }) {
  return {
    pictures: {},
    text: joined(
      `## Memory of open questions

What the server process holds for each question that waits for a user, after garbage collection. With a sealed state the client
carries the flow, and the server holds nothing for it. In a session of 2025 the call waits in memory, with its connection.
Heap below ${noise} bytes for each is noise.`,
      markdownTable(
        [
          'server',
          'how it waits',
          'open',
          'heap bytes for each',
          'resident bytes for each',
          'bytes that the client carries',
        ],
        results.map(({ peer, kind, open, heapBytes, rssBytes, stateBytes }) => [
          nameOf(peer),
          waits[kind],
          rounded(open),
          Math.abs(heapBytes) < noise ? 'about 0' : rounded(heapBytes),
          kind === 'sealed' ? '' : rounded(rssBytes),
          stateBytes === 0 ? '' : rounded(stateBytes),
        ]),
      ),
      missing(failures),
    ),
  }
}
