// What the page and the model learn about a call.
import { ANSWER_TOOL, RESULT_TOOL } from '../protocol/apps.ts'
import type { FieldIssues } from './misfits.ts'
import type { AskingRecord, DoneRecord } from './records.ts'

/** Where the page finds what it shows: in `_meta`, which hosts keep from the model. */
export const META_VIEW = 'com.mcp-rally/ask'

/** What the page shows. */
export type View = CallView | ProblemView

/** How a call stands. */
export type CallView =
  | (Omit<AskingRecord, 'state'> & {
      readonly id: string
      /** Absent if the call is a task. */
      readonly state?: string
      /** What the server found wrong with the last answer. */
      readonly issues?: FieldIssues
    })
  | {
      readonly kind: 'working'
      readonly id: string
      readonly tool: string
      readonly message?: string
      readonly pollMs: number
    }
  | (DoneRecord & {
      readonly id: string
      /** True if a call of the model was waiting for the result, and has it. */
      readonly heard: boolean
    })

/** Why the page cannot go on: it is out of date, the question has expired, or the server has no record of the call. */
export interface ProblemView {
  readonly kind: 'problem'
  readonly reason: 'stale' | 'expired' | 'unknown'
  readonly message: string
}

export const STALE: ProblemView = {
  kind: 'problem',
  reason: 'stale',
  message: `Only the form of the user can call ${ANSWER_TOOL}. If this is the form, it is out of date: reload it.`,
}
export const EXPIRED: ProblemView = {
  kind: 'problem',
  reason: 'expired',
  message: 'This question has expired. Ask the assistant to start again.',
}
export const UNKNOWN: ProblemView = {
  kind: 'problem',
  reason: 'unknown',
  message: 'Nothing is known of this call: it has expired, or the id is wrong. Ask the user whether to start again.',
}

/** What the model reads in place of the result. `link` is where the user answers, unless the host shows the form. */
export function startedText({ kind, id, tool }: CallView, link?: string): string {
  if (kind === 'working') {
    const where = link === undefined ? 'in a form beside this result' : `on this page: ${link}`
    return (
      `"${tool}" runs in the background and is not done. ` +
      `Call ${RESULT_TOOL} with id "${id}": it waits for the result. The user may be asked meanwhile, ${where}`
    )
  }
  const asks =
    link === undefined
      ? `it asks the user, who sees a form beside this result and answers there. You cannot answer for the user. `
      : `it asks the user, who answers on this page: ${link}\n` +
        `First show the user that link, whole and unchanged. You cannot answer for the user, so do not open it. `
  return (
    `"${tool}" is not done: ${asks}` +
    `Do not call "${tool}" again for this, and do not say that it is done. ` +
    `${link === undefined ? 'Now' : 'Then'} call ${RESULT_TOOL} with id "${id}": it waits for the answer and returns the result.`
  )
}

/** What the model reads when it has waited long enough. */
export function waitingText(view: CallView, link?: string): string {
  if (view.kind === 'working') {
    const message = view.message === undefined ? '' : ` (${view.message})`
    return `"${view.tool}" is still running${message}. Call ${RESULT_TOOL} with the same id again, now or in a later turn.`
  }
  const where = link === undefined ? '' : ` The form is at ${link}\nThe user must have that link.`
  return (
    `Still waiting: the user has not answered the form of "${view.tool}" yet.${where} Call ${RESULT_TOOL} with the same id once more. ` +
    'If it still waits then, tell the user in one sentence that the form is waiting, and end your turn. ' +
    'Call it again when the user says that the form is answered.'
  )
}
