// What seals and opens a state: tokens under a keyring, or the user's own (a KMS, say), which may be asynchronous and is
// not trusted to behave.

import { RallyError } from '../protocol/errors.ts'
import { SealError } from './seal-error.ts'

/** Must keep the text secret and refuse (throw at) any token that `seal` did not give. Claims are not its concern. */
export interface StateCodec {
  seal(plaintext: string): string | Promise<string>
  open(token: string): string | Promise<string>
}

/** A promise only where the codec gives one. */
export function sealWith(codec: StateCodec, plaintext: string): string | Promise<string> {
  const token: unknown = codec.seal(plaintext)
  return isThenable(token) ? Promise.resolve(token).then(asToken) : asToken(token)
}

/** A promise only where the codec gives one. Whatever the codec throws comes out as a `SealError`. */
export function openWith(codec: StateCodec, token: string): string | Promise<string> {
  const refuse = (error: unknown): never => {
    throw refusal(error, token)
  }
  try {
    const plaintext: unknown = codec.open(token)
    return isThenable(plaintext) ? Promise.resolve(plaintext).then(asPlaintext).catch(refuse) : asPlaintext(plaintext)
  } catch (error) {
    return refuse(error)
  }
}

function asToken(token: unknown): string {
  if (typeof token === 'string') return token
  throw new RallyError('CODEC_INVALID', `codec.seal gave ${kind(token)}: it must give the token as a string.`)
}

function asPlaintext(plaintext: unknown): string {
  if (typeof plaintext === 'string') return plaintext
  throw new SealError(`codec.open gave ${kind(plaintext)} and not the text that was sealed`)
}

function refusal(error: unknown, token: string): SealError {
  if (error instanceof SealError) return error
  // Many libraries quote what they could not read, and the reason is for the log.
  const said = error instanceof Error ? `${error.name}: ${error.message}`.replaceAll(token, '(token)') : kind(error)
  return new SealError(`codec.open threw ${said}`, { cause: error })
}

function kind(value: unknown): string {
  return value === null ? 'null' : typeof value
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
