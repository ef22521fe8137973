// Sends a request that may be repeated again while its response is awaited, because a network may drop a request without a sign.
import type { Deadline } from './deadline.ts'
import { MAX_TIMER_MS } from './deadline.ts'
import { isConnectionLoss } from './errors.ts'
import type { ResponseCallbacks, RpcResponse } from './transports/transport.ts'

const MAX_SENT = 3
/** A server that is only slow must not get every request twice. */
const MIN_WAIT_MS = 1_000

/**
 * Sends the request again when half of the time that is left has passed, twice at most. The first response counts. The earlier
 * request is not cancelled: a server that is slow has the whole time to answer it. `send` returns a function that cancels.
 */
export function hedged(deadline: Deadline, send: (callbacks: ResponseCallbacks) => () => void): Promise<RpcResponse> {
  return deadline.wait((resolve, reject) => {
    const cancels = new Set<() => void>()
    let timer: NodeJS.Timeout | undefined
    let waitMs = deadline.leftMs / 2
    let sent = 0
    let open = 0
    let isOver = false
    const end = (): void => {
      isOver = true
      clearTimeout(timer)
      for (const cancel of cancels) cancel()
    }
    const settle = (cancel: (() => void) | undefined): void => {
      // It has ended by itself.
      if (cancel !== undefined) cancels.delete(cancel)
      end()
    }
    const sendOne = (): void => {
      sent += 1
      open += 1
      let cancel: (() => void) | undefined
      let isOpen = true
      cancel = send({
        deadline,
        started: () => clearTimeout(timer),
        resolve: (response) => {
          isOpen = false
          settle(cancel)
          resolve(response)
        },
        reject: (error) => {
          isOpen = false
          open -= 1
          if (open > 0 && isConnectionLoss(error)) return
          settle(cancel)
          reject(error)
        },
      })
      // `send` may have settled it already.
      if (isOpen) cancels.add(cancel)
      if (isOver || sent === MAX_SENT || waitMs < MIN_WAIT_MS || waitMs > MAX_TIMER_MS) return
      timer = setTimeout(sendOne, waitMs)
      waitMs /= 2
    }
    sendOne()
    return end
  })
}
