// Logs what fails in a flow, with the original error. Every failure is logged once: when a pass records it, or when it ends the call.
//
// A replay logs nothing: a recorded failure reaches the handler as `StepFailed`, and that was logged when it was recorded.
import { isPublicProtocolError, RallyError } from '../protocol/errors.ts'
import { callSafely } from '../protocol/call-safely.ts'
import type { Logger } from '../protocol/logger.ts'
import type { Caller } from './caller.ts'
import { failureReference, flowDigest } from './derive.ts'
import { Declined, Expired, StepFailed, ToolError } from './errors.ts'

/** What a flow runs: a tool, a prompt or a resource. */
export interface TargetName {
  readonly method: string
  /** The name of the tool or prompt, or the resource's URI. */
  readonly target: string
}

/** Where something failed, for `onError`. */
export interface ErrorContext {
  /** The method of the request, such as `tools/call`. */
  readonly method: string
  /** The name of the tool or prompt, or the resource's URI. */
  readonly target: string
  /** The name of the tool, if it is one. */
  readonly tool: string | undefined
  /** The key of the step, scope or question that failed, if it was one. */
  readonly key: string | undefined
  /** A digest that names the flow in logs, because its id is a secret. `undefined` outside of a flow, as in a completion. */
  readonly flow: string | undefined
  /** 0 in the first round. */
  readonly round: number
  /** The caller. `undefined` if it was not authenticated. */
  readonly caller: Caller | undefined
  /** What a caller reads in place of the message: `The tool failed. Reference: ...` */
  readonly reference: string | undefined
}

/** Receives what fails in requests and tasks and is not the author's own answer to the caller, once: never on a replay. */
export type OnError = (error: unknown, context: ErrorContext) => void

/** Where something failed. */
export interface FailurePlace {
  readonly target: TargetName
  /** `taskId` if it is a task. */
  readonly flow: { readonly id: string; readonly round: number; readonly taskId?: string }
  readonly caller: Caller | undefined
  readonly logger: Logger
  readonly onError: OnError | undefined
}

/**
 * Logs a failure. The author's own answer to the caller is logged as `debug`, and one that was logged before not at all. `key` is the
 * key of the io call.
 */
export function logFailure(place: FailurePlace, error: unknown, key?: string): void {
  if (!isExpected(error)) return logUnexpected(place, error, key)
  if (error instanceof StepFailed) return
  place.logger.debug?.(`${nameOf(place.target)}: ${whatFailed(key)}.`, detailsOf(place, error, key))
}

/**
 * Logs the failure of a step or scope when it is recorded. The handler catches a `StepFailed` in its place. If it does not, the caller
 * reads a reference, except for the answers that a replay brings back.
 */
export function logRecorded(place: FailurePlace, error: unknown, { key, kind }: { key: string; kind: string }): void {
  const isAnswer =
    error instanceof ToolError || (kind === 'scope' && (error instanceof Declined || error instanceof Expired))
  if (isAnswer || error instanceof StepFailed) return logFailure(place, error, key)
  logUnexpected(place, error, key, 'error')
}

function whatFailed(key: string | undefined): string {
  return key === undefined ? 'failed' : `"${key}" failed`
}

/** Logs a failure whatever its class. */
export function logUnexpected(place: FailurePlace, error: unknown, key?: string, level = levelOf(error)): void {
  const { target, flow, logger, onError, caller } = place
  const reference = failureReference(flow.id, key)
  logger[level](`${nameOf(target)}: ${whatFailed(key)}.`, { ...detailsOf(place, error, key), reference })
  if (onError === undefined) return
  const { method } = target
  const tool = method === 'tools/call' ? target.target : undefined
  const digest = flowDigest(flow.id)
  const context = { method, target: target.target, tool, key, flow: digest, round: flow.round, caller, reference }
  callOnError(place, error, context)
}

/** Of a public error the message says it all: the handler broke a rule of Rally's, or met a limit. */
function levelOf(error: unknown): 'warn' | 'error' {
  return error instanceof RallyError && error.isPublic ? 'warn' : 'error'
}

/** A request outside of a flow, such as a completion. */
export interface ServingPlace extends Pick<FailurePlace, 'logger' | 'onError' | 'caller'> {
  /** Its `target` is empty if the method names none. */
  readonly target: TargetName
  /** `undefined` if the caller reads only "Internal error". */
  readonly reference?: string
}

/** Logs a failure outside of a flow. The author's own answer to the caller is logged as `debug`. */
export function logServing(place: ServingPlace, error: unknown): void {
  const { target, caller, logger, reference } = place
  const principal = caller && { principal: caller.principal }
  const details = { ...target, ...principal, error, ...(reference !== undefined && { reference }) }
  const message = `Serving ${target.method} failed.`
  const level = reference === undefined ? 'error' : levelOf(error)
  if (level === 'warn' && isExpected(error)) return logger.debug?.(message, details)
  logger[level](message, details)
  const nothing = { tool: undefined, key: undefined, flow: undefined }
  callOnError(place, error, { ...target, ...nothing, round: 0, caller, reference })
}

function callOnError(
  { logger, onError }: Pick<FailurePlace, 'logger' | 'onError'>,
  error: unknown,
  context: ErrorContext,
): void {
  if (onError === undefined) return
  callSafely(
    () => onError(error, context),
    (thrown) => logger.error('onError() failed.', { error: thrown }),
  )
}

/**
 * The error as a caller may read it. Whatever another system wrote may contain secrets, such as the password in a driver's message:
 * in its place the caller gets a reference, by which the log has the rest.
 */
export function publicError(
  error: unknown,
  { target, flow }: Pick<FailurePlace, 'target' | 'flow'>,
  key?: string,
): unknown {
  if (error instanceof RallyError && error.isPublic) return error
  return maskedError(target.method, failureReference(flow.id, error instanceof StepFailed ? error.origin : key))
}

/** What a caller reads in place of an error. */
export function maskedError(method: string, reference: string): ToolError {
  return new ToolError(`The ${KINDS[method] ?? 'request'} failed. Reference: ${reference}`)
}

const KINDS: Readonly<Record<string, string>> = {
  'tools/call': 'tool',
  'prompts/get': 'prompt',
  'resources/read': 'resource',
  'completion/complete': 'completion',
}

/** The details of a log entry. The ids of the flow and of the task are secrets, so they contain only digests of them. */
export function detailsOf(
  { target, flow, caller }: Pick<FailurePlace, 'target' | 'flow'> & Partial<Pick<FailurePlace, 'caller'>>,
  error?: unknown,
  key?: string,
): Record<string, unknown> {
  return {
    method: target.method,
    target: target.target,
    ...(target.method === 'tools/call' && { tool: target.target }),
    ...(key !== undefined && { key }),
    flow: flowDigest(flow.id),
    round: flow.round,
    ...(flow.taskId !== undefined && { task: flowDigest(flow.taskId) }),
    ...(caller !== undefined && { principal: caller.principal }),
    ...(error !== undefined && { error }),
  }
}

/** How messages name a target, such as `Tool "deploy"`. */
export function nameOf({ method, target }: TargetName): string {
  if (method === 'tools/call') return `Tool "${target}"`
  return method === 'prompts/get' ? `Prompt "${target}"` : `Resource ${target}`
}

/**
 * `Declined`, `Expired`, `ToolError` and `ProtocolError` are answers to the caller, and so are wrong arguments. What our client received
 * from another server is not the author's own. `StepFailed` was logged when it was recorded.
 */
export function isExpected(error: unknown): boolean {
  if (error instanceof Declined || isPublicProtocolError(error) || error instanceof ToolError) return true
  if (error instanceof StepFailed || error instanceof Expired) return true
  return error instanceof RallyError && error.code === 'ARGUMENTS_INVALID'
}
