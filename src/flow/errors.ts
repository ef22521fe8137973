// What can go wrong in a flow, as a handler or a carrier sees it.
import type { FlowErrorCode } from '../protocol/error-codes.ts'
import type { ForeignErrorCode } from '../protocol/errors.ts'
import { MISSING_CAPABILITY, ProtocolError, RallyError } from '../protocol/errors.ts'
import type { ClientCapabilities } from '../protocol/messages.ts'
import { TASKS_EXTENSION } from '../protocol/revisions/2026-07-28.ts'
import { quoted } from '../protocol/text.ts'

/** A rule of the flow was broken; the pass has failed, whether or not the handler caught anything. */
export class FlowError extends RallyError {
  override readonly code: FlowErrorCode

  constructor(code: FlowErrorCode, message: string, options?: ErrorOptions) {
    super(code, message, options)
    this.code = code
  }
}

/** The user declined or cancelled a question. Catch it to go on without the answer. */
export class Declined extends RallyError {
  declare readonly code: 'DECLINED'
  readonly key: string
  readonly action: 'decline' | 'cancel'

  constructor(key: string, action: 'decline' | 'cancel') {
    super('DECLINED', `The user ${action === 'decline' ? 'declined' : 'cancelled'} the question "${key}".`)
    this.key = key
    this.action = action
  }
}

/** A step or scope failed. It carries the name, message and code of the original error, live and replayed alike. */
export class StepFailed extends RallyError {
  /** The code of the original error, or 'STEP_FAILED' if it had none. */
  override readonly code: 'STEP_FAILED' | ForeignErrorCode
  readonly step: string
  readonly #name: string

  constructor(step: string, failure: Failure) {
    super('STEP_FAILED', failure.message)
    this.code = failure.code ?? 'STEP_FAILED'
    this.step = step
    this.#name = failure.name
  }

  override get name(): string {
    return this.#name
  }
}

/** The client did not declare what a question needs (-32021). */
export class MissingCapability extends ProtocolError {
  constructor(key: string, required: ClientCapabilities) {
    super(
      MISSING_CAPABILITY,
      `The question "${key}" needs a capability that the client did not declare: ${Object.keys(required).join(', ')}`,
      { requiredCapabilities: required },
    )
  }
}

/** The flow was to go on as a task, and cannot (-32021). */
export class NoTask extends ProtocolError {
  constructor() {
    super(MISSING_CAPABILITY, 'This goes on as a task only, and the client did not declare the extension for them.', {
      requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } },
    })
  }
}

export function noTask(): NoTask {
  return new NoTask()
}

/** An error as it is recorded: what survives a trip through the journal. */
export interface Failure {
  name: string
  message: string
  code?: string | number
}

export function toFailure(error: unknown): Failure {
  if (!(error instanceof Error)) return { name: 'Error', message: typeof error === 'string' ? error : 'Unknown error' }
  const failure: Failure = { name: error.name, message: error.message }
  const code: unknown = 'code' in error ? error.code : undefined
  if (typeof code === 'string' || typeof code === 'number') failure.code = code
  return failure
}

export function keyInvalid(key: unknown): FlowError {
  const shown = typeof key === 'string' ? quoted(key) : `of type ${typeof key}`
  return new FlowError('KEY_INVALID', `The key ${shown} is not valid: use 1 to 128 of A-Z a-z 0-9 _ . : / - [ ].`)
}

export function keyReused(key: string): FlowError {
  return new FlowError(
    'KEY_REUSED',
    `The key "${key}" was used twice in one flow. Give every call its own; in a loop, put the index into it: "${key}[0]".`,
  )
}

export function keyKind(key: string, was: string, is: string): FlowError {
  return new FlowError(
    'KEY_KIND',
    `"${key}" was recorded as a call of io.${was} and is now one of io.${is}. Give it a new key, or the tool a new version.`,
  )
}

export function nestedCall(key: string, step: string): FlowError {
  return new FlowError(
    'NESTED_CALL',
    `io was called ("${key}") inside the step "${step}". A step is one side effect: ask before it, or use io.scope.`,
  )
}

export function questionChanged(key: string, effect: string): FlowError {
  return new FlowError(
    'QUESTION_CHANGED',
    `The question "${key}" has changed since it was answered, and "${effect}" was done after that answer. Derive questions from arguments and recorded values only, or give the tool a new version.`,
  )
}

export function askedTooOften(key: string, times: number, why = ''): FlowError {
  return new FlowError(
    'ASKED_TOO_OFTEN',
    `The question "${key}" was asked ${times} times without an answer that can be used. ${why}`.trim(),
  )
}

export function tooLarge(bytes: number, allowed: number, largest: string[]): FlowError {
  return new FlowError(
    'JOURNAL_TOO_LARGE',
    `The journal has ${bytes} bytes and may have ${allowed}. Record ids instead of documents, or put many small steps into a scope. Largest: ${largest.join(', ')}.`,
  )
}

export function timeLimit(ms: number, waitingFor: string): FlowError {
  return new FlowError(
    'TIME_LIMIT',
    `The pass took longer than ${ms} ms${waitingFor && `, waiting for ${waitingFor}`}. Long work belongs into several steps or a task.`,
  )
}

export function questionInvalid(key: string, why: string): FlowError {
  return new FlowError('QUESTION_INVALID', `The question "${key}" cannot be asked: ${why}.`)
}

/** Both directions: `key` is the question that io was asked after a round by hand. */
export function mixedStyles(key?: string): FlowError {
  const what =
    key === undefined
      ? 'asked through io and then returned inputRequired'
      : `returned inputRequired and then asked "${key}" through io`
  return new FlowError('MIXED_STYLES', `This call ${what}. Take all of its rounds by hand, or none.`)
}

export function interrupted(): FlowError {
  return new FlowError(
    'INTERRUPTED',
    'The server is going down before this call was done, and it recorded nothing to go on from. What it has done may stand.',
  )
}
