// Connections whose client has sent its last byte. It may still wait for its response, or it may be gone: TCP shows both in the same
// way. Only writing tells: the system of a client that is gone answers with a reset, and the next write fails.
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** A response that can be told to write something harmless. */
export const PROBE = Symbol('probe')

export interface ProbedResponse extends ServerResponse {
  [PROBE]?: Probed
}

interface Probed {
  /** Writes what a client ignores. */
  probe(): void
}

/** The first write causes the reset, the second one notices it. Later ones come less and less often. */
const FIRST_MS = 50
const LAST_MS = 15_000

/** Writes to the connection now and then while it has a response to come. A client that is gone is noticed within moments. */
export function watchHalfClosed(socket: Socket): void {
  let timer: NodeJS.Timeout | undefined
  const probe = (nextMs: number): void => {
    // The response whose turn it is. Node closes the connection after the last one.
    const response = Reflect.get(socket, '_httpMessage') as ProbedResponse | null | undefined
    response?.[PROBE]?.probe()
    timer = setTimeout(probe, nextMs, Math.min(nextMs * 2, LAST_MS)).unref()
  }
  socket.once('close', () => clearTimeout(timer))
  probe(FIRST_MS)
}
