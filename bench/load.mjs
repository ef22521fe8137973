// The load generator, a process of its own: takes one order at a time over IPC and answers with what it counted.
import { setTimeout as after } from 'node:timers/promises'
import { Connection } from './connection.mjs'
import { roundsOf } from './requests.mjs'

const lastResponsesWithin = 5000

process.on('disconnect', () => process.exit())
process.on('message', (order) => {
  measure(order).then(
    (counted) => process.send(counted),
    (error) => process.send({ error: error.message }),
  )
})

async function measure({ port, authorization, dialect, scenario, connections, milliseconds }) {
  const rounds = roundsOf(scenario, { port, authorization, dialect })
  const tally = { open: true, requests: 0, requestBytes: 0, responseBytes: 0 }
  const opened = await Promise.all(Array.from({ length: connections }, () => Connection.open(port, rounds, tally)))
  try {
    const startedAt = performance.now()
    const cpuBefore = process.cpuUsage()
    const finished = Promise.all(opened.map((connection) => connection.run()))
    await Promise.race([finished, after(milliseconds)])
    const elapsed = performance.now() - startedAt
    const { user, system } = process.cpuUsage(cpuBefore)
    const { requests, requestBytes, responseBytes } = tally
    tally.open = false
    await Promise.race([
      finished,
      after(lastResponsesWithin).then(() => Promise.reject(new Error('no response for 5 s'))),
    ])
    if (requests === 0) throw new Error(`no response within ${milliseconds} ms`)
    return {
      requests,
      perSecond: (requests * 1000) / elapsed,
      generatorLoad: (user + system) / 1000 / elapsed,
      requestBytes: Math.round(requestBytes / requests),
      responseBytes: Math.round(responseBytes / requests),
    }
  } finally {
    for (const connection of opened) connection.close()
  }
}
