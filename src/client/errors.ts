// What can go wrong on the client's side. What the server itself says is wrong is a ProtocolError.
import type { ClientErrorCode } from '../protocol/error-codes.ts'
import { RallyError } from '../protocol/errors.ts'
import { cut } from '../protocol/text.ts'
import type { PendingCall } from './pending.ts'
import type { SavedTask } from './tasks/saved.ts'

export interface ClientErrorOptions extends ErrorOptions {
  status?: number
  challenge?: string
}

export class ClientError extends RallyError {
  override readonly code: ClientErrorCode
  /** The HTTP status, where that is what was wrong. */
  readonly status: number | undefined
  /** The server's `WWW-Authenticate`, where it refused the caller. */
  readonly challenge: string | undefined
  /** The last round of a call that had got further than its first: `resume` goes on from it. */
  pending: PendingCall | undefined
  /** The task that the call had become, which may still go on: `client.task` takes it up. */
  task: SavedTask | undefined

  constructor(code: ClientErrorCode, message: string, options: ClientErrorOptions = {}) {
    super(code, brief(message), 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.status = options.status
    this.challenge = options.challenge
  }
}

/** A name or a schema of the server's that is part of it may be of any length. */
const LONGEST_MESSAGE = 8_192

function brief(message: string): string {
  return cut(message, LONGEST_MESSAGE)
}

export function badResponse(why: string, options?: ErrorOptions): ClientError {
  return new ClientError('BAD_RESPONSE', `The server's response cannot be used: ${why}.`, options)
}

export function tooLarge(maxBytes: number): ClientError {
  return new ClientError(
    'RESPONSE_TOO_LARGE',
    `The server's response is larger than ${maxBytes} bytes (maxResponseBytes).`,
  )
}

/** Nothing of the request has reached the server. */
export function unreachable(why: string, cause?: unknown): ClientError {
  return new ClientError('CONNECTION', `The server cannot be reached: ${why}. Nothing was sent.`, { cause })
}

/** The command itself is wrong, and would be next time. */
export function notStarted(why: string): ClientError {
  return new ClientError('COMMAND', `The server could not be started: ${why}`)
}

/** The request may have reached the server. */
export function lost(why: string, cause?: unknown): ClientError {
  return new ClientError(
    'LOST',
    `The response was lost: ${why}. What was asked for may or may not have happened.`,
    cause === undefined ? {} : { cause },
  )
}

export function notResumable(revision: string, cause?: unknown): ClientError {
  return new ClientError(
    'NOT_RESUMABLE',
    `The server speaks ${revision}, in which questions are answered in the middle of a call, and no round of one can be saved: give connect what answers them.`,
    cause === undefined ? {} : { cause },
  )
}

export function noTasks(revision: string): ClientError {
  return new ClientError('NO_TASKS', `The server speaks ${revision}, in which this client knows of no tasks.`)
}

export function tooMany(message: string): ClientError {
  return new ClientError('TOO_MANY_ROUNDS', message)
}

export function closed(): ClientError {
  return new ClientError('CLOSED', 'The client was closed.')
}

export function wrongOption(message: string): ClientError {
  return new ClientError('OPTION_INVALID', message)
}
