// The flags of `npm run bench`, and what a run without any does.
import { parseArgs } from 'node:util'
import { scenarioNames } from './requests.mjs'

const allPeers = ['echo', 'byHand', 'rally', 'bearer', 'official', 'tuned']

export function readOptions(args) {
  const { values } = parseArgs({
    args,
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      connections: { type: 'string' },
      peers: { type: 'string' },
    },
  })
  const { quick, only, connections, peers } = values
  if (only !== undefined && !scenarioNames.includes(only)) throw new Error(`--only takes ${scenarioNames.join(' or ')}`)
  if (connections !== undefined && !/^[1-9]\d{0,3}$/.test(connections))
    throw new Error('--connections takes a number from 1 to 9999')
  const named = peers?.split(',')
  if (named?.some((peer) => !allPeers.includes(peer))) throw new Error(`--peers takes some of ${allPeers.join(',')}`)
  return {
    scenarios: only ? [only] : scenarioNames,
    connections: connections ? [Number(connections)] : [32, 1],
    peers: allPeers.filter((peer) => named?.includes(peer) ?? true),
    rounds: quick ? 3 : 9,
    milliseconds: quick ? 400 : 800,
    warmup: quick ? 500 : 1000,
    imports: quick ? 3 : 15,
  }
}
