// What encrypts and decrypts a plaintext: tokens under a keyring, or a codec of the user (such as a KMS). A custom codec may
// be asynchronous, and what it returns is checked.

import { RallyError } from '../protocol/errors.ts'
import { SealError } from './errors.ts'

/**
 * Your own encryption of the state that clients carry. It must keep the plaintext secret, and `open` must throw for any
 * token that `seal` did not return. Rally checks the caller, the request and the expiry itself.
 */
export interface StateCodec {
  /** Encrypts the text. Returns the token that the client carries. */
  seal(plaintext: string): string | Promise<string>
  /** Returns the text of a token that `seal` made. Throws for every other token. */
  open(token: string): string | Promise<string>
}

/** Returns a promise only if the codec does. */
export function sealWith(codec: StateCodec, plaintext: string): string | Promise<string> {
  const token: unknown = codec.seal(plaintext)
  return isThenable(token) ? Promise.resolve(token).then(asToken) : asToken(token)
}

/** Returns a promise only if the codec does. Everything the codec throws becomes a `SealError`. */
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
  throw new RallyError('CODEC_INVALID', `codec.seal: must return the token as a string, got ${kind(token)}.`)
}

function asPlaintext(plaintext: unknown): string {
  if (typeof plaintext === 'string') return plaintext
  throw new SealError(`codec.open must return the sealed plaintext as a string, got ${kind(plaintext)}`)
}

function refusal(error: unknown, token: string): SealError {
  if (error instanceof SealError) return error
  // The reason goes to the log, and many libraries quote the text that they could not read.
  const said = error instanceof Error ? `${error.name}: ${error.message}`.replaceAll(token, '(token)') : kind(error)
  return new SealError(`codec.open threw ${said}`, { cause: error })
}

function kind(value: unknown): string {
  return value === null ? 'null' : typeof value
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
