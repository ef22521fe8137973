// How a peer speaks to the run: it says where it listens and how to authorize, if at all, and afterwards how much CPU time it has used so far whenever
// it is asked. It ends when the run does.

export function announce(port, authorization) {
  process.on('disconnect', () => process.exit())
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    process.send({ cpuMicroseconds: user + system })
  })
  process.send({ port, authorization })
}
