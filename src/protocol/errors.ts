// The base class of every error that Rally throws, and the JSON-RPC codes that it sends.
import type { RallyErrorCode } from './error-codes.ts'

/** A code that is not Rally's: the one of an error that a step threw, as `StepFailed` repeats it. */
export type ForeignErrorCode = number | (string & Record<never, never>)

/**
 * The base class of every error that Rally throws. Switch on `code`: it is stable, the message is for people.
 *
 * ```ts
 * if (error instanceof RallyError) {
 *   switch (error.code) {
 *     case 'OPTION_INVALID': ...
 *   }
 * }
 * ```
 */
export class RallyError extends Error {
  /** Says which error it is. It stays the same from version to version: compare it, and not the message. */
  readonly code: RallyErrorCode | ForeignErrorCode

  constructor(code: RallyErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }

  override get name(): string {
    return this.constructor.name
  }

  /** True if a caller may read the message: it contains nothing that another system wrote. */
  get isPublic(): boolean {
    return true
  }
}

/** Runs a check of what the author of an app wrote. The stack of its error begins with the line that called `entry`. */
export function atCaller<T>(entry: (...args: never[]) => unknown, check: () => T): T {
  try {
    return check()
  } catch (error) {
    // An engine other than V8 may not have it.
    if (error instanceof RallyError) Error.captureStackTrace?.(error, entry)
    throw error
  }
}

/**
 * A JSON-RPC error with this code, message and data. Throw one from a handler to end the call with a protocol error
 * instead of a result that the model reads. A client throws one when the server answers with an error: that one is not public, so
 * a handler that does not catch it passes none of it on.
 */
export class ProtocolError extends RallyError {
  declare readonly code: 'PROTOCOL'
  /** The code of the JSON-RPC error, such as -32602. */
  readonly rpcCode: number
  /** The `data` of the JSON-RPC error. */
  readonly data: unknown

  constructor(rpcCode: number, message: string, data?: unknown, options?: ErrorOptions) {
    super('PROTOCOL', message, options)
    this.rpcCode = rpcCode
    this.data = data
  }
}

/** True if a caller may read it as it is. What our client received from another server is no answer of the author's. */
export function isPublicProtocolError(error: unknown): error is ProtocolError {
  return error instanceof ProtocolError && error.isPublic
}

export const PARSE_ERROR = -32700
export const INVALID_REQUEST = -32600
export const METHOD_NOT_FOUND = -32601
export const INVALID_PARAMS = -32602
export const INTERNAL_ERROR = -32603
export const HEADER_MISMATCH = -32020
export const MISSING_CAPABILITY = -32021
export const UNSUPPORTED_VERSION = -32022
/** Revision 2025-11-25 only. */
export const URL_ELICITATION_REQUIRED = -32042
