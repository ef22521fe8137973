// Holds the result of a tool against what the tool itself says that it gives.
import type { CallToolResult } from '../protocol/messages.ts'
import { ClientError } from './errors.ts'
import type { ClientContext } from './context.ts'
import type { Deadline } from './deadline.ts'

/** Throws `RESULT_INVALID` where it does not fit. */
export async function checkOutput(
  { tools, lists }: ClientContext,
  name: string,
  result: CallToolResult,
  deadline: Deadline,
): Promise<void> {
  let misfits = tools.misfits(name, result)
  // What is known may be old. Where nothing newer is to be had, it is what there is.
  if (misfits.length > 0 && lists.fresh('tools') === undefined) {
    await lists.fetch('tools', deadline).catch(() => {})
    misfits = tools.misfits(name, result)
  }
  if (misfits.length === 0) return
  throw new ClientError(
    'RESULT_INVALID',
    `The result of ${name} does not fit the tool's own outputSchema: ${misfits.join('; ')}.`,
  )
}
