// How a peer speaks to the run: it says where it listens and how to authorize, if at all. Afterwards it says how much CPU time it has used
// so far, or how much memory it holds after a garbage collection, whenever it is asked. It ends when the run does.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

export function announce(port, authorization) {
  process.on('disconnect', () => process.exit())
  process.on('message', (what) => process.send(what === 'memory' ? heldMemory() : usedTime()))
  process.send({ port, authorization })
}

function usedTime() {
  const { user, system } = process.cpuUsage()
  return { cpuMicroseconds: user + system }
}

function heldMemory() {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc')
  for (let time = 0; time < 3; time += 1) collect()
  const { heapUsed, external, rss } = process.memoryUsage()
  return { heapBytes: heapUsed + external, rssBytes: rss }
}
