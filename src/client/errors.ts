// What can fail on the client's side. An error that the server reports is a ProtocolError.
import type { ClientErrorCode } from '../protocol/error-codes.ts'
import { ProtocolError, RallyError } from '../protocol/errors.ts'
import type { JSONRPCErrorObject } from '../protocol/messages.ts'
import { cut } from '../protocol/text.ts'
import type { RetryAdvice } from '../protocol/unavailable.ts'
import { readRetryAdvice } from '../protocol/unavailable.ts'
import type { PendingCall, Results, SavedTask } from './saved.ts'

export interface ClientErrorOptions extends ErrorOptions {
  status?: number
  challenge?: string
  retryAfterMs?: number | undefined
}

/** An error on the client's side. Switch on `code`. */
export class ClientError extends RallyError {
  /** It may contain words of the server. */
  override get isPublic(): boolean {
    return false
  }

  override readonly code: ClientErrorCode
  /** The HTTP status that caused the error. */
  readonly status: number | undefined
  /** The server's `WWW-Authenticate` header, with the code `UNAUTHORIZED`. */
  readonly challenge: string | undefined
  /** How long the server asks to wait before the request is sent again. */
  readonly retryAfterMs: number | undefined
  /** The last round of a call that failed after its first round. Pass it to `client.resume()` to continue. */
  pending: PendingCall | undefined
  /** The task that the call had become. It may still run: pass it to `client.task()`. */
  task: SavedTask | undefined
  /** The result of the tool, with the code `TOOL_FAILED`. */
  result: Results['tools/call'] | undefined

  constructor(code: ClientErrorCode, message: string, options: ClientErrorOptions = {}) {
    super(code, cut(message, MAX_MESSAGE_LENGTH), 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.status = options.status
    this.challenge = options.challenge
    this.retryAfterMs = options.retryAfterMs
  }
}

/** The error that a server answered with. A `ProtocolError` in all but this: a handler that calls a server may not pass it on. */
export class ReceivedError extends ProtocolError {
  /** It contains words of the server. */
  override get isPublic(): boolean {
    return false
  }

  override get name(): string {
    return 'ProtocolError'
  }
}

export function received({ code, message, data }: JSONRPCErrorObject): ReceivedError {
  return new ReceivedError(code, message, data)
}

/** Ends a text with one period. A reason that comes from elsewhere may have its own. */
export function sentence(text: string): string {
  return text.endsWith('.') ? text : `${text}.`
}

/** A message may contain a name or a schema that the server chose, of any length. */
const MAX_MESSAGE_LENGTH = 8_192

export function badResponse(why: string, options?: ErrorOptions): ClientError {
  return new ClientError('BAD_RESPONSE', `The server's response is not valid: ${why}.`, options)
}

export function tooLarge(maxBytes: number): ClientError {
  return new ClientError(
    'RESPONSE_TOO_LARGE',
    `The server's response is larger than ${maxBytes} bytes. To accept it, raise maxResponseBytes in connect().`,
  )
}

export function tooMuchBuffered(maxBytes: number): ClientError {
  return new ClientError(
    'RESPONSE_TOO_LARGE',
    `The responses that are being read take more than ${maxBytes} bytes together. Make fewer calls at once, or raise maxBufferedBytes in connect().`,
  )
}

/** No part of the request has reached the server. */
export function unreachable(why: string, cause?: unknown): ClientError {
  return new ClientError('CONNECTION', `Cannot reach the server: ${why}. Nothing was sent.`, { cause })
}

/** The command is wrong, so a retry would fail too. */
export function notStarted(why: string): ClientError {
  return new ClientError('COMMAND', `Cannot start the server: ${why}. Check command, args and cwd.`)
}

/** The process has exited without an answer, so nothing was done. */
export function stopped(why: string, cause: unknown): ClientError {
  return new ClientError('COMMAND', `The server stopped before it answered: ${why.trimEnd()}`, { cause })
}

/** The request may have reached the server. */
export function lost(why: string, cause?: unknown, advice?: RetryAdvice): ClientError {
  return new ClientError('LOST', `The response was lost: ${why}. The request may or may not have taken effect.`, {
    ...(cause !== undefined && { cause }),
    retryAfterMs: advice?.retryAfterMs,
  })
}

/** The request reached the server, which did nothing with it. */
export function unavailable(why: string, { retryAfterMs }: RetryAdvice): ClientError {
  return new ClientError('UNAVAILABLE', `The server is not available: ${sentence(why)} Nothing was done.`, {
    status: 503,
    retryAfterMs,
  })
}

/** True if the server was out of reach, before or after the request was sent. */
export function isConnectionLoss(error: unknown): boolean {
  return error instanceof ClientError && CONNECTION_LOSS.has(error.code)
}

const CONNECTION_LOSS: ReadonlySet<string> = new Set(['LOST', 'CONNECTION', 'UNAVAILABLE'])

/** When the server asks for the request to be sent again, if it does. */
export function retryAdviceOf(error: unknown): RetryAdvice | undefined {
  if (error instanceof ProtocolError) return readRetryAdvice(error.data)
  if (!(error instanceof ClientError) || error.retryAfterMs === undefined) return undefined
  return { retryAfterMs: error.retryAfterMs, isUnprocessed: error.code === 'UNAVAILABLE' }
}

export function notResumable(revision: string, cause?: unknown): ClientError {
  return new ClientError(
    'NOT_RESUMABLE',
    `The server uses revision ${revision}, in which questions are answered during the call and no round can be saved. Pass onElicit, onVisit, onSample or onRoots to connect().`,
    cause === undefined ? {} : { cause },
  )
}

export function noTasks(revision: string): ClientError {
  return new ClientError('NO_TASKS', `The server uses revision ${revision}, and has no tasks for this client.`)
}

export function tooManyRounds(message: string): ClientError {
  return new ClientError('TOO_MANY_ROUNDS', message)
}

export function stateTooLarge(bytes: number, maxBytes: number): ClientError {
  return new ClientError(
    'STATE_TOO_LARGE',
    `The server's state must have at most ${maxBytes} bytes, got ${bytes}. To accept it, raise maxStateBytes in connect().`,
  )
}

export function closed(): ClientError {
  return new ClientError('CLOSED', 'The client was closed.')
}

export function wrongOption(message: string): ClientError {
  return new ClientError('OPTION_INVALID', message)
}
