// Why a token was refused. For the log only: what the caller learns is `InvalidState`.

import { RallyError } from '../protocol/errors.ts'

/** The `reason` never holds text of the token or of what was sealed in it. */
export class SealError extends RallyError {
  declare readonly code: 'STATE_INVALID'
  readonly reason: string

  constructor(reason: string, options?: ErrorOptions) {
    super('STATE_INVALID', reason, options)
    this.reason = reason
  }
}
