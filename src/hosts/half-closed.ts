// Connections whose client has sent its last byte. It may still wait for its response, or it may be gone: TCP shows both in the same
// way. Only writing tells: the system of a client that is gone answers with a reset, and the next write fails.
import type { Socket } from 'node:net'

/** The last request of a connection. Set on the socket: a property of every response would make all responses slower. */
export const LAST_REQUEST = Symbol('last request')

export interface ProbedSocket extends Socket {
  [LAST_REQUEST]?: Probed
}

export interface Probed {
  /** Writes what a client ignores, if it is the turn of its response. Returns the request before it otherwise. */
  probe(): Probed | undefined
}

/** The first write causes the reset, the second one notices it. Later ones come less and less often. */
const FIRST_MS = 50
const LAST_MS = 15_000

/** Writes to the connection now and then while it has a response to come. A client that is gone is noticed within moments. */
export function watchHalfClosed(socket: Socket): void {
  let timer: NodeJS.Timeout | undefined
  const probe = (nextMs: number): void => {
    // Node closes the connection after the last response.
    for (let each = (socket as ProbedSocket)[LAST_REQUEST]; each !== undefined;) each = each.probe()
    timer = setTimeout(probe, nextMs, Math.min(nextMs * 2, LAST_MS)).unref()
  }
  socket.once('close', () => clearTimeout(timer))
  probe(FIRST_MS)
}
