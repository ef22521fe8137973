// What a task comes to, as it is kept: a result, or the error of a call that failed as a whole.
import { INTERNAL_ERROR, ProtocolError } from '../protocol/errors.ts'
import { errorText } from '../server/reply.ts'
import type { RoundHost } from '../server/round.ts'
import type { RegisteredTool } from '../server/tool.ts'
import type { TaskChange } from '../store/store.ts'

/** A value that cannot be told is a failure like any other. */
export async function endingOf(
  tool: RegisteredTool,
  host: RoundHost,
  text: () => string | Promise<string>,
): Promise<TaskChange> {
  try {
    return { status: 'completed', outcome: await text() }
  } catch (error) {
    try {
      return { status: 'completed', outcome: tool.failureText(error, host) }
    } catch (told) {
      return failed(told)
    }
  }
}

export function failed(error: unknown): TaskChange {
  const told = error instanceof ProtocolError ? error : new ProtocolError(INTERNAL_ERROR, 'Internal error')
  return { status: 'failed', outcome: errorText(told), message: told.message }
}
