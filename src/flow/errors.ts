// The errors of a flow, as a handler or a carrier sees them.
import type { FlowErrorCode } from '../protocol/error-codes.ts'
import type { ForeignErrorCode } from '../protocol/errors.ts'
import { MISSING_CAPABILITY, ProtocolError, RallyError } from '../protocol/errors.ts'
import type { ClientCapabilities } from '../protocol/messages.ts'
import { TASKS_EXTENSION } from '../protocol/revisions/2026-07-28.ts'
import { quoted, shown } from '../protocol/text.ts'

/** A rule of the flow was broken. The pass has failed, even if the handler caught the error. */
export class FlowError extends RallyError {
  override readonly code: FlowErrorCode

  constructor(code: FlowErrorCode, message: string, options?: ErrorOptions) {
    super(code, message, options)
    this.code = code
  }
}

/** The user declined or cancelled a question. Catch it to continue without the answer. */
export class Declined extends RallyError {
  declare readonly code: 'DECLINED'
  /** The key of the question. */
  readonly key: string
  /** What the user did. */
  readonly action: 'decline' | 'cancel'

  constructor(key: string, action: 'decline' | 'cancel') {
    super('DECLINED', `The user ${action === 'decline' ? 'declined' : 'cancelled'} the question "${key}".`)
    this.key = key
    this.action = action
  }
}

/** A question was not answered within its `withinMs`. Catch it to continue without the answer, or pass `otherwise`. */
export class Expired extends RallyError {
  declare readonly code: 'EXPIRED'
  /** The key of the question or event. */
  readonly key: string

  constructor(key: string) {
    super('EXPIRED', `"${key}" was not answered in time.`)
    this.key = key
  }
}

/**
 * Tells the model what went wrong. Throw it from a handler or a step: its message is the result of the call, with `isError`, and
 * nothing is logged. The message of any other error is shown to callers only in development.
 *
 * @example
 * if (stock === 0) throw new ToolError('Sold out. Ask the user for another size.')
 */
export class ToolError extends RallyError {
  declare readonly code: 'TOOL_ERROR'

  constructor(message: string, options?: ErrorOptions) {
    super('TOOL_ERROR', message, options)
  }
}

/**
 * Ends a step without another attempt: throw it when a retry cannot help. The handler catches a `StepFailed` with its message.
 *
 * @example
 * if (response.status === 402) throw new Fatal('The card was declined.')
 */
export class Fatal extends RallyError {
  declare readonly code: 'FATAL'

  constructor(message: string, options?: ErrorOptions) {
    super('FATAL', message, options)
  }

  override get isPublic(): boolean {
    return false
  }
}

/** An attempt of a step took longer than `timeoutMs`. The handler catches it as a `StepFailed` with this code. */
export class StepTimeout extends RallyError {
  declare readonly code: 'STEP_TIMEOUT'

  constructor(key: string, ms: number) {
    super('STEP_TIMEOUT', `The step "${key}" took longer than its \`timeoutMs\`, which is ${ms} ms.`)
  }
}

/** A step or scope failed. Has the name, message and code of the original error, live and replayed alike. */
export class StepFailed extends RallyError {
  /** The code of the original error, or 'STEP_FAILED' if it had none. */
  override readonly code: 'STEP_FAILED' | ForeignErrorCode
  /** The key of the step or scope. */
  readonly step: string
  /** The key of the step that failed first, if this is the scope around it. */
  readonly origin: string
  readonly #name: string
  readonly #isPublic: boolean

  constructor(step: string, failure: Failure) {
    super('STEP_FAILED', failure.message)
    this.code = failure.code ?? 'STEP_FAILED'
    this.step = step
    this.origin = failure.origin ?? step
    this.#name = failure.name
    this.#isPublic = failure.public === true
  }

  /** True if a `ToolError` was thrown. */
  override get isPublic(): boolean {
    return this.#isPublic
  }

  override get name(): string {
    return this.#name
  }
}

/** The client did not declare a capability that a question needs (-32021). Users and models read its message. */
export class MissingCapability extends ProtocolError {
  constructor(key: string, required: ClientCapabilities) {
    const { needs, lack, feature } = lackOf(required)
    super(MISSING_CAPABILITY, lackText(`${needs} (question "${key}")`, lack, feature), {
      requiredCapabilities: required,
    })
  }
}

/** The flow must continue as a task, and the client does not support tasks (-32021). */
export class NoTask extends ProtocolError {
  constructor() {
    super(MISSING_CAPABILITY, lackText('runs in the background, as a task', 'does not support that', 'MCP tasks'), {
      requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } },
    })
  }
}

/** What a user and a model read when the client cannot do what a request needs. */
export function lackText(needs: string, lack: string, feature: string): string {
  return `This request ${needs}, and the app that sent it ${lack}. To try again in that app will not help. Use an app that supports ${feature}, or turn that on in its settings.`
}

/** Of the first capability that is missing: what the request needs, what the app does not do, and what the protocol calls it. */
function lackOf({ elicitation, sampling, roots }: ClientCapabilities): Record<'needs' | 'lack' | 'feature', string> {
  if (elicitation !== undefined) {
    const isVisit = elicitation.url !== undefined
    return {
      needs: isVisit ? 'needs the user to visit a web page' : 'needs an answer from the user',
      lack: 'cannot ask its user',
      feature: isVisit ? 'MCP elicitation by URL' : 'MCP elicitation',
    }
  }
  if (sampling !== undefined) {
    const details = Object.keys(sampling).join(' and ')
    const beside = details === '' ? '' : ` with ${details}`
    return {
      needs: 'needs a language model',
      lack: `does not let servers use its model${beside}`,
      feature: `MCP sampling${beside}`,
    }
  }
  if (roots !== undefined)
    return { needs: "needs to know the user's folders", lack: 'does not share them', feature: 'MCP roots' }
  return { needs: 'needs a feature of MCP', lack: 'does not support it', feature: 'it' }
}

export function noTask(): NoTask {
  return new NoTask()
}

/** Why `io.detach({ required: true })` fails: because of the handler, of the app, or of the client. */
export function cannotDetach(
  where: string,
  { method, task }: { readonly method: string; readonly task?: string | undefined },
  hasStore: boolean | undefined,
): FlowError | NoTask {
  if (task === 'never' || method !== 'tools/call') {
    const never = `${where}: io.detach({ required: true }) needs a task, and the handler never becomes one.`
    const advice = "Only tools can, without `task: 'never'`. Change that, or call io.detach() without `required`."
    return new FlowError('TASK_NEVER', `${never} ${advice}`)
  }
  if (hasStore !== false) return new NoTask()
  return new FlowError(
    'STORE_REQUIRED',
    'io.detach({ required: true }) needs a store, and the app has none. Pass one to rally({ store }).',
  )
}

/** An error as the journal records it. */
export interface Failure {
  name: string
  message: string
  code?: string | number
  /** Set if a `ToolError` was thrown. */
  public?: true
  /** The key of the step that failed first, in the failure of a scope. */
  origin?: string
}

/** The failure of a scope as the journal records it. What the handler may catch by its class stays that. */
export function scopeFailure(error: unknown): Failure | { declined: string; action: string } | { expired: string } {
  if (error instanceof Declined) return { declined: error.key, action: error.action }
  return error instanceof Expired ? { expired: error.key } : toFailure(error)
}

export function toFailure(error: unknown): Failure {
  if (!(error instanceof Error)) return { name: 'Error', message: typeof error === 'string' ? error : 'Unknown error' }
  const failure: Failure = { name: error.name, message: error.message }
  const code: unknown = 'code' in error ? error.code : undefined
  if (typeof code === 'string' || typeof code === 'number') failure.code = code
  if (error instanceof ToolError) failure.public = true
  if (error instanceof StepFailed) {
    if (error.isPublic) failure.public = true
    failure.origin = error.origin
  }
  return failure
}

export function keyInvalid(key: unknown): FlowError {
  const got = typeof key === 'string' ? quoted(key) : `a value of type ${typeof key}`
  return new FlowError(
    'KEY_INVALID',
    `io: a key must be 1 to 128 characters of A-Z a-z 0-9 _ . : / - [ ], got ${got}. Choose another key.`,
  )
}

export function keyReused(key: string): FlowError {
  return new FlowError(
    'KEY_REUSED',
    `io: the key "${key}" is used twice in one flow. Give every call its own key; in a loop, put the index into it: "${key}[0]".`,
  )
}

export function keyKind(key: string, was: string, is: string): FlowError {
  return new FlowError(
    'KEY_KIND',
    `io.${is}("${key}"): this key was recorded by io.${was}. Choose another key, or give the tool a new version.`,
  )
}

export function nestedCall(key: string, step: string): FlowError {
  return new FlowError(
    'NESTED_CALL',
    `io: "${key}" was called inside the step "${step}". A step is one side effect: ask before it, or use io.scope.`,
  )
}

/** Its stack is the one of the io call, so that the log points at the author's line. */
export function notAwaited(where: string, what: string, cause: unknown, frames: readonly string[]): FlowError {
  const error = new FlowError(
    'NOT_AWAITED',
    `${where}: ${what} failed, and the handler did not await it. Did you forget \`await\`?`,
    { cause },
  )
  if (frames.length > 0) error.stack = [`${error.name}: ${error.message}`, ...frames].join('\n')
  return error
}

export function stepGone(where: string, key: string): FlowError {
  return new FlowError(
    'STEP_GONE',
    `${where}: "${key}" is recorded in this flow, and the handler did not call it. If it was renamed or removed, its effect may have happened twice: restore the key, or give the handler a new \`version\`.`,
  )
}

export function questionChanged(key: string, effect: string): FlowError {
  return new FlowError(
    'QUESTION_CHANGED',
    `The question "${key}" has changed since it was answered, and "${effect}" ran after that answer. Build questions from arguments and recorded values only, or give the tool a new version.`,
  )
}

export function askedTooOften(key: string, times: number, why = ''): FlowError {
  return new FlowError(
    'ASKED_TOO_OFTEN',
    `The question "${key}" was asked ${times} times, and no answer was valid. ${why}`.trim(),
  )
}

export function tooLarge(bytes: number, allowed: number, largest: string[]): FlowError {
  return new FlowError(
    'JOURNAL_TOO_LARGE',
    `The journal has ${bytes} bytes, and the limit is ${allowed}. Record ids instead of documents, or group small steps in io.scope. Largest entries: ${largest.join(', ')}.`,
  )
}

/** `nested` is a step that was running while a question was open, if there was one. */
export function timeLimit(
  ms: number,
  waitingFor: string,
  isTask: boolean,
  nested?: { step: string; ask: string },
): FlowError {
  const advice = isTask
    ? 'Raise `tasks.timeoutMs`, or `timeoutMs` of the tool.'
    : 'Split long work into several steps, run it as a task, or raise timeoutMs.'
  const hint =
    nested &&
    `The question "${nested.ask}" may be inside the step "${nested.step}", which then never ends: ask before the step, or use io.scope. Otherwise: `
  return new FlowError(
    'TIME_LIMIT',
    `The pass took longer than ${ms} ms${waitingFor && `, waiting for ${waitingFor}`}. ${hint ?? ''}${advice}`,
  )
}

/** `what` names the call, such as `The sleep "night"`. */
export function eventNeedsTask(key: string): FlowError {
  return new FlowError(
    'EVENT_NEEDS_TASK',
    `The event "${key}" needs a task, because a plain call cannot wait for others. Register the tool with \`task: 'always'\`, or call io.detach({ required: true }) first.`,
  )
}

export function eventInvalid(key: string, why: string): FlowError {
  return new FlowError('EVENT_INVALID', `The event "${key}" cannot be awaited: ${why}.`)
}

export function waitInvalid(what: string, got: string): FlowError {
  return new FlowError('WAIT_INVALID', `${what} must wait a number of milliseconds, or until a valid Date, got ${got}.`)
}

export function waitTooLong(
  what: string,
  ms: number,
  { limitMs, leftMs }: { readonly limitMs: number; readonly leftMs: number },
  advice: string,
): FlowError {
  // A wait that is longer than the whole limit never fits. Any other would have, earlier in the flow.
  const left = ms > limitMs ? '' : `, of which ${Math.floor(leftMs)} ms are left`
  return new FlowError(
    'WAIT_TOO_LONG',
    `${what} waits ${Math.round(ms)} ms, and the limit here is ${limitMs} ms${left}. ${advice}`,
  )
}

/** What to do about a wait that is too long for a plain call: that depends on why the call is no task. */
export function plainWaitAdvice(
  { target: { method, task }, mayDetach, hasStore }: PlainCall,
  kind: 'sleep' | 'ask',
): string {
  if (mayDetach) return 'Call io.detach() before it, so that the flow continues as a task, or wait less.'
  const instead = `Wait less, or raise \`${kind === 'ask' ? 'ttl' : 'timeoutMs'}\`.`
  if (method !== 'tools/call') return `Only tools become tasks, which may wait longer. ${instead}`
  if (task === 'never') return `A tool with \`task: 'never'\` cannot become a task, which may wait longer. ${instead}`
  if (hasStore !== false) return `The client does not support tasks, which may wait longer. ${instead}`
  return `Pass a store to rally({ store }) and call io.detach() before it, so that the flow continues as a task. ${instead}`
}

/** What decides whether a call can become a task. */
interface PlainCall {
  readonly target: { readonly method: string; readonly task?: string | undefined }
  readonly mayDetach?: boolean | undefined
  readonly hasStore?: boolean | undefined
}

/** Beyond the times that a `Date` can hold. */
export function waitTooLate(what: string, ms: number, kind: 'sleep' | 'ask'): FlowError {
  const advice = kind === 'ask' ? 'Leave out `withinMs` for no deadline.' : 'Wait less.'
  return new FlowError('WAIT_TOO_LONG', `${what} waits ${ms} ms, which ends after the year 255000. ${advice}`)
}

/** `usage` is how the call is written. */
export function functionMissing(key: string, got: unknown, usage: string): RallyError {
  return new RallyError(
    'OPTION_INVALID',
    `"${key}": the second argument must be the function to run, got ${shown(got)}. Write ${usage}.`,
  )
}

export function questionInvalid(key: string, why: string): FlowError {
  return new FlowError('QUESTION_INVALID', `The question "${key}" cannot be asked: ${why}.`)
}

/** `key` is the question that was asked through io after a round by hand; absent in the other direction. */
export function mixedStyles(key?: string): FlowError {
  const what =
    key === undefined
      ? 'asked through io and then returned inputRequired'
      : `returned inputRequired and then asked "${key}" through io`
  return new FlowError(
    'MIXED_STYLES',
    `The handler ${what} in one call. Use one of the two styles in all rounds of a call.`,
  )
}

/** The handler returned something that is almost `inputRequired(...)`, or a kind of result that only Rally makes. */
export function resultInvalid(why: string): FlowError {
  return new FlowError(
    'QUESTION_INVALID',
    `The handler returned a result that cannot be sent: ${why}. To ask, return inputRequired({ inputRequests, state }).`,
  )
}

export function needsByHand(where: string): FlowError {
  return new FlowError(
    'MIXED_STYLES',
    `${where}: a handler with \`needs\` cannot take its rounds by hand, because needs are asked through io. Ask through io, or read what it needs in the handler.`,
  )
}

export function interrupted(): FlowError {
  return new FlowError(
    'INTERRUPTED',
    'The server shut down before this call was done, and nothing was recorded to resume from. Its side effects may have happened. Call again.',
  )
}
