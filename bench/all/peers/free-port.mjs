// A port for servers that do not say which one they got for 0.
import { once } from 'node:events'
import { createServer } from 'node:net'

export async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address()
  probe.close()
  await once(probe, 'close')
  return port
}
