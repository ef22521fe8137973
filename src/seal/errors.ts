// The two errors of a token that does not open: `SealError` says why, for the log; `InvalidState` is all that the caller sees.

import { INVALID_PARAMS, ProtocolError, RallyError } from '../protocol/errors.ts'

/** The `reason` never contains text of the token or of its plaintext. */
export class SealError extends RallyError {
  declare readonly code: 'STATE_INVALID'
  readonly reason: string

  constructor(reason: string, options?: ErrorOptions) {
    super('STATE_INVALID', reason, options)
    this.reason = reason
  }
}

/** Says the same for every cause. The `cause` is for the log. */
export class InvalidState extends ProtocolError {
  constructor(cause: unknown) {
    super(INVALID_PARAMS, 'Invalid or expired requestState', undefined, { cause })
  }
}
