// How a task ends: with a result, or with the error of a call that failed as a whole.
import type { Ending } from '../flow/carrier.ts'
import { Declined, Expired, FlowError, StepFailed } from '../flow/errors.ts'
import type { EndedFlow } from '../flow/run.ts'
import { endText } from '../flow/run.ts'
import { INTERNAL_ERROR, isPublicProtocolError, ProtocolError } from '../protocol/errors.ts'
import type { AppServices } from '../server/context.ts'
import { errorText } from '../server/reply.ts'
import type { RegisteredTool } from '../server/tool.ts'
import type { TaskChange } from '../store/tasks.ts'
import { isErrorText } from './outcome.ts'
import type { TaskFlowState } from './state.ts'
import { endedState, writeState } from './state.ts'

export async function endingOf(
  tool: RegisteredTool,
  outcome: Ending,
  ended: EndedFlow<AppServices>,
): Promise<TaskChange> {
  try {
    return { status: 'completed', outcome: await endText(tool, outcome, ended, undefined) }
  } catch (error) {
    return failedWith(error)
  }
}

export function failedWith(error: unknown): TaskChange {
  const shown = isPublicProtocolError(error) ? error : new ProtocolError(INTERNAL_ERROR, 'Internal error')
  return { status: 'failed', outcome: errorText(shown), message: shown.message }
}

/** True also for a tool that threw or returned `isError`, which is `completed` on the wire. */
export function hasFailed(ending: TaskChange, outcome: Ending): boolean {
  return outcome.kind === 'failed' || ending.status === 'failed' || isErrorText(ending.outcome)
}

/** The ending of a task that has not failed, with its last state. */
export function writeSuccess(state: TaskFlowState, ending: TaskChange): TaskChange {
  return { ...ending, state: writeState(endedState(state, 'ok')) }
}

/** The ending of a task that failed. State and journal are kept, so that it can be retried. */
export function writeFailure(
  state: TaskFlowState,
  ending: TaskChange,
  outcome: Ending,
  keepFailedMs: number,
): TaskChange {
  return { ...ending, ...keep({ ...state, ended: 'error', failedKey: failedKeyOf(outcome) }, keepFailedMs) }
}

/** The same for a task that no worker could run. Changes the state, which is written with the rest of the change. */
export function giveUp(state: TaskFlowState, keepFailedMs: number): Pick<TaskChange, 'keepMs'> {
  state.ended = 'gave_up'
  if (keepFailedMs === 0) return {}
  state.isKept = true
  return { keepMs: keepFailedMs }
}

/** How many errors an error may be around. */
const MOST_CAUSES = 10

/** The key of the step or question whose failure the handler threw, if it did. */
function failedKeyOf(outcome: Ending): string | undefined {
  if (outcome.kind !== 'failed') return undefined
  let error: unknown = outcome.error
  for (let i = 0; i < MOST_CAUSES && error instanceof Error; i += 1) {
    if (error instanceof StepFailed) return error.step
    if (error instanceof Declined || error instanceof Expired) return error.key
    error = error.cause
  }
  return outcome.key
}

function keep(state: TaskFlowState, keepFailedMs: number): Pick<TaskChange, 'state' | 'keepMs'> {
  if (keepFailedMs === 0) return { state: writeState(endedState(state, state.ended)) }
  return { state: writeState({ ...state, isKept: true }), keepMs: keepFailedMs }
}

/** A failure of the store, which neither the handler nor its client can do anything about. */
export class StoreFault extends Error {
  constructor(cause: unknown) {
    super('The store failed.', { cause })
  }
}

/** True if the instance shut down before the handler recorded anything. A task is then simply run again. */
export function isInterrupted(error: unknown): boolean {
  return error instanceof FlowError && error.code === 'INTERRUPTED'
}
