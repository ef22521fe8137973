// A logger that a server cannot flood: so much a minute, and no more.
import type { Logger } from '../protocol/logger.ts'

const MOST = 100
const WINDOW_MS = 60_000

export function limitLogRate(logger: Logger): Logger {
  let said = 0
  let since = 0
  const maySay = (): boolean => {
    const now = performance.now()
    if (since === 0 || now - since > WINDOW_MS) {
      since = now
      said = 0
    }
    said += 1
    if (said === MOST) logger.warn(`There is more to log than ${MOST} messages a minute; the rest is left out.`)
    return said < MOST
  }
  return {
    warn: (message, ...details) => {
      if (maySay()) logger.warn(message, ...details)
    },
    error: (message, ...details) => {
      if (maySay()) logger.error(message, ...details)
    },
  }
}
