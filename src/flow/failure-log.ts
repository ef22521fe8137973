// Logs what fails in a flow, with the original error. Every failure is logged once: when a pass records it, or when it ends the call.
//
// A replay logs nothing: a recorded failure reaches the handler as `StepFailed`, and that was logged when it was recorded.
// A hook for operators (`onError`) belongs into `logUnexpected`: nothing else in the server sees every failure.
import { ProtocolError, RallyError } from '../protocol/errors.ts'
import type { Logger } from '../protocol/logger.ts'
import { flowDigest } from './derive.ts'
import { Declined, StepFailed } from './errors.ts'

/** What a flow runs: a tool, a prompt or a resource. */
export interface TargetName {
  readonly method: string
  /** The name of the tool or prompt, or the resource's URI. */
  readonly target: string
}

/** Where something failed. */
export interface FailurePlace {
  readonly target: TargetName
  readonly flow: { readonly id: string }
  readonly logger: Logger
}

/** Logs a failure, except if it is the author's own answer to the caller or was logged before. `key` is the key of the io call. */
export function logFailure(place: FailurePlace, error: unknown, key?: string): void {
  if (!isExpected(error)) logUnexpected(place, error, key)
}

/** Logs a failure whatever its class. */
export function logUnexpected(place: FailurePlace, error: unknown, key?: string): void {
  const what = key === undefined ? 'failed' : `"${key}" failed`
  place.logger.error(`${nameOf(place.target)}: ${what}.`, detailsOf(place, error, key))
}

/** The details of a log entry. The flow's id is a secret, so they contain only a digest of it. */
export function detailsOf({ target, flow }: FailurePlace, error?: unknown, key?: string): Record<string, unknown> {
  return {
    method: target.method,
    target: target.target,
    ...(key !== undefined && { key }),
    flow: flowDigest(flow.id),
    ...(error !== undefined && { error }),
  }
}

/** How messages name a target, such as `Tool "deploy"`. */
export function nameOf({ method, target }: TargetName): string {
  if (method === 'tools/call') return `Tool "${target}"`
  return method === 'prompts/get' ? `Prompt "${target}"` : `Resource ${target}`
}

/** `Declined` and `ProtocolError` are answers to the caller, and so are wrong arguments. `StepFailed` was logged when it was recorded. */
function isExpected(error: unknown): boolean {
  if (error instanceof Declined || error instanceof ProtocolError || error instanceof StepFailed) return true
  return error instanceof RallyError && error.code === 'ARGUMENTS_INVALID'
}
