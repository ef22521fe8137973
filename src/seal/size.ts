// How large a token may be, and what is said when one is not, or nearly not.

import { RallyError } from '../protocol/errors.ts'
import type { Logger } from '../protocol/logger.ts'
import type { Binding } from './claims.ts'
import { defaults } from './defaults.ts'
import { SealError } from './seal-error.ts'

/** Names the largest entries of a journal; called only when there is something to say about its size. */
export type Largest = () => readonly string[]

export interface SizeLimit {
  /** The token that a client sent, or a `SealError`. */
  received(token: unknown): string
  /** The token just made, or a `STATE_TOO_LARGE`; past 8 KiB with a warning, once for each target. */
  minted(token: string, binding: Binding, largest?: Largest): string
}

export function sizeLimit(maxBytes: number, logger: Logger | undefined): SizeLimit {
  const warned = new Set<string>()
  return {
    received(token) {
      if (typeof token !== 'string') throw new SealError(`a ${typeof token} and not a string`)
      const size = Buffer.byteLength(token)
      if (size > maxBytes) throw new SealError(`${size} bytes, and at most ${maxBytes} are looked at`)
      return token
    },
    minted(token, { method, target }, largest) {
      const size = Buffer.byteLength(token)
      if (size > maxBytes) {
        throw new RallyError(
          'STATE_TOO_LARGE',
          `The sealed state of ${method} ${target} is ${size} bytes and at most ${maxBytes} are allowed: ` +
            `record less in its steps, or raise maxBytes.${namesOf(largest)}`,
        )
      }
      if (size > defaults.warnTokenBytes && logger && isFirst(`${method} ${target}`, warned)) {
        logger.warn(
          `The sealed state of ${method} ${target} is ${size} bytes, and the client sends it back with every round: ` +
            `record less in its steps.${namesOf(largest)}`,
          { method, target, size, maxBytes },
        )
      }
      return token
    },
  }
}

/** The URIs of a template are the client's to choose, so what is remembered of them is bounded. */
const mostRemembered = 256

function isFirst(name: string, seen: Set<string>): boolean {
  if (seen.has(name)) return false
  if (seen.size === mostRemembered) seen.clear()
  seen.add(name)
  return true
}

function namesOf(largest: Largest | undefined): string {
  const names = largest?.() ?? []
  return names.length > 0 ? ` Largest entries: ${names.join(', ')}.` : ''
}
