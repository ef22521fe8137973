// What is wrong with a request itself, with the HTTP status that says so.
import { INTERNAL_ERROR, INVALID_REQUEST, ProtocolError } from '../protocol/errors.ts'

export class Refusal extends ProtocolError {
  readonly status: number

  constructor(status: number, why: string) {
    super(status >= 500 ? INTERNAL_ERROR : INVALID_REQUEST, `Invalid request: ${why}`)
    this.status = status
  }
}
