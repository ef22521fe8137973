// Latency percentiles of servers at half of their capacity.
import { lines } from '../plot.mjs'
import { joined, markdownTable, missing, nameOf, picture, rounded } from '../words.mjs'

const percentiles = { p50: 'p50', p90: 'p90', p99: 'p99', p999: 'p99.9' }
const scenarios = ['plain', 'sealed']
/** Of fewer requests in a run, p99.9 is only the slowest one. */
const enough = 1000

export function latencyPart({ rounds, seconds, failures, results }) {
  const isKnown = (name, { requests }) => name !== 'p999' || requests / rounds >= enough
  return {
    pictures: Object.fromEntries(
      scenarios.map((scenario) => [
        file(scenario),
        lines({
          title: `Latency at half of the capacity, ${scenario} calls`,
          x: 'percentile',
          y: 'ms',
          isLog: true,
          ticks: Object.values(percentiles),
          series: results
            .filter((each) => each.scenario === scenario)
            .map((each) => ({
              label: nameOf(each.peer),
              points: Object.keys(percentiles)
                .filter((name) => isKnown(name, each))
                .map((name, index) => [index, each[name]]),
            })),
        }),
      ]),
    ),
    text: joined(
      `## Latency

Requests are sent on a fixed schedule, at half of what each server can serve, whether or not earlier ones were answered. Latency counts
from the time when a request should have been sent. Server and generator have a core each. Medians of ${rounds} runs of ${seconds} s. A run
of fewer than ${rounded(enough)} requests has no p99.9.`,
      ...scenarios.map((scenario) => picture(file(scenario), `Latency percentiles of ${scenario} calls`)),
      markdownTable(
        ['server', 'calls', 'per second', ...Object.values(percentiles).map((name) => `${name}, ms`)],
        results.map((each) => [
          nameOf(each.peer),
          each.scenario,
          rounded(each.perSecond),
          Object.keys(percentiles).map((name) => (isKnown(name, each) ? rounded(each[name], 2) : 'too few')),
        ]),
      ),
      missing(failures),
    ),
  }
}

function file(scenario) {
  return `bench-latency-${scenario}.svg`
}
