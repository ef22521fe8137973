// How a client under measurement takes orders from the run: so many calls at a time, for so long, at a server on this port.

const lastFlowsWithin = 5000

/** `connect` takes an address and gives `call`, which resolves to the text of the result, and `close`. */
export function takeOrders(connect) {
  process.on('disconnect', () => process.exit())
  process.on('message', (order) => {
    measure(connect, order).then(
      (counted) => process.send(counted),
      (error) => process.send({ error: error.message }),
    )
  })
}

async function measure(connect, { port, calls, milliseconds }) {
  const client = await connect(`http://127.0.0.1:${port}/mcp`)
  const tally = { open: true, flows: 0 }
  const run = async () => {
    while (tally.open) {
      const text = await client.call()
      if (text !== 'Deployed to prod') throw new Error(`a call came to ${text}`)
      tally.flows += 1
    }
  }
  try {
    const startedAt = performance.now()
    const cpuBefore = process.cpuUsage()
    const finished = Promise.all(Array.from({ length: calls }, run))
    await Promise.race([finished, after(milliseconds)])
    const elapsed = performance.now() - startedAt
    const { user, system } = process.cpuUsage(cpuBefore)
    const { flows } = tally
    tally.open = false
    await Promise.race([
      finished,
      after(lastFlowsWithin).then(() => Promise.reject(new Error('a call was not done after 5 s'))),
    ])
    if (flows === 0) throw new Error(`no flow within ${milliseconds} ms`)
    return { perSecond: (flows * 1000) / elapsed, cpuMicroseconds: (user + system) / flows }
  } finally {
    await client.close()
  }
}

function after(milliseconds) {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds).unref()
  })
}
