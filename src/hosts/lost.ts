// Tells a request that its connection is lost while it still waits for its turn on it: Node tells only the response whose
// turn it is.
import type { Socket } from 'node:net'

/** One listener for each connection, however many requests wait on it. */
const waiting = new WeakMap<Socket, Set<() => void>>()

/** Gives what to call once there is nothing to be told any more. */
export function onLost(socket: Socket, lost: () => void): () => void {
  const all = waiting.get(socket) ?? listen(socket)
  all.add(lost)
  return () => void all.delete(lost)
}

function listen(socket: Socket): Set<() => void> {
  const all = new Set<() => void>()
  waiting.set(socket, all)
  socket.once('close', () => {
    for (const lost of all) lost()
  })
  return all
}
