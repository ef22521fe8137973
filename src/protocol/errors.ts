// The one base class of every error Rally raises, and the JSON-RPC codes it may put on the wire.

/** Every error that Rally itself raises. Switch on `code`: it is stable, the message is for people. */
export class RallyError extends Error {
  readonly code: string | number

  constructor(code: string | number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }

  override get name(): string {
    return this.constructor.name
  }
}

/**
 * An error that goes onto the wire as it is: a JSON-RPC error with this code, message and data.
 * Throw one from a handler to end the call with a protocol error instead of a result that the model reads.
 */
export class ProtocolError extends RallyError {
  readonly rpcCode: number
  readonly data: unknown

  constructor(rpcCode: number, message: string, data?: unknown, options?: ErrorOptions) {
    super('PROTOCOL', message, options)
    this.rpcCode = rpcCode
    this.data = data
  }
}

export const PARSE_ERROR = -32700
export const INVALID_REQUEST = -32600
export const METHOD_NOT_FOUND = -32601
export const INVALID_PARAMS = -32602
export const INTERNAL_ERROR = -32603
export const HEADER_MISMATCH = -32020
export const MISSING_CAPABILITY = -32021
export const UNSUPPORTED_VERSION = -32022
/** Of 2025-11-25 alone. */
export const URL_ELICITATION_REQUIRED = -32042
