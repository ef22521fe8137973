// How a task ends: with a result, or with the error of a call that failed as a whole.
import type { Ending } from '../flow/carrier.ts'
import { FlowError } from '../flow/errors.ts'
import type { EndedFlow } from '../flow/run.ts'
import { endText } from '../flow/run.ts'
import { INTERNAL_ERROR, ProtocolError } from '../protocol/errors.ts'
import type { AppServices } from '../server/context.ts'
import { errorText } from '../server/reply.ts'
import type { RegisteredTool } from '../server/tool.ts'
import type { TaskChange } from '../store/tasks.ts'

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
  const shown = error instanceof ProtocolError ? error : new ProtocolError(INTERNAL_ERROR, 'Internal error')
  return { status: 'failed', outcome: errorText(shown), message: shown.message }
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
