// How large a token may be (invariant 6 of the seal), and the messages about one that is too large or nearly so.

import { RallyError } from '../protocol/errors.ts'
import type { Logger } from '../protocol/logger.ts'
import type { Binding } from './envelope.ts'
import { SealError } from './errors.ts'

/** Returns the keys of the largest journal entries. Called only to explain why a token is large. */
export type Largest = () => readonly string[]

export interface SizeLimit {
  /** Returns the token that a client sent. Throws `SealError` if it is not a string or too large. */
  received(token: unknown): string
  /** Returns the token just minted. Throws `STATE_TOO_LARGE`; above 8 KiB it warns, once for each target. */
  minted(token: string, binding: Binding, largest?: Largest): string
}

/** The client sends a token back with every round, so a larger one is worth a warning. */
const WARN_BYTES = 8_192

/** `describe` says what a token is, for the messages. */
export function sizeLimit(
  maxBytes: number,
  logger: Logger | undefined,
  describe: (binding: Binding) => string,
): SizeLimit {
  const warned = new Set<string>()
  return {
    received(token) {
      if (typeof token !== 'string') throw new SealError(`must be a string, got ${typeof token}`)
      const size = Buffer.byteLength(token)
      if (size > maxBytes) throw new SealError(`has ${size} bytes, the limit is ${maxBytes}`)
      return token
    },
    minted(token, binding, largest) {
      const size = Buffer.byteLength(token)
      if (size > maxBytes) {
        throw new RallyError(
          'STATE_TOO_LARGE',
          `The ${describe(binding)} has ${size} bytes, at most ${maxBytes} are allowed. ` +
            `Record less in its steps, or raise maxStateBytes.${namesOf(largest)}`,
        )
      }
      if (size > WARN_BYTES && logger && isFirst(describe(binding), warned)) {
        const { method, target } = binding
        logger.warn(
          `The ${describe(binding)} has ${size} bytes, and the client sends it back with every round. ` +
            `Record less in its steps.${namesOf(largest)}`,
          { method, target, size, maxBytes },
        )
      }
      return token
    },
  }
}

/** A client chooses the URIs of a template, so the number of targets to remember is bounded. */
const MAX_WARNED = 256

function isFirst(name: string, seen: Set<string>): boolean {
  if (seen.has(name)) return false
  if (seen.size === MAX_WARNED) seen.clear()
  seen.add(name)
  return true
}

function namesOf(largest: Largest | undefined): string {
  const names = largest?.() ?? []
  return names.length > 0 ? ` Largest entries: ${names.join(', ')}.` : ''
}
