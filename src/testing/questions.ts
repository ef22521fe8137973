// Questions as a client sees them, and the answers it may give.
import type { ElicitResult, FormValue, InputRequest, InputResponse } from '../protocol/messages.ts'

/** A question on its way to the client, under its key. Switch on `method`. */
export type AskedQuestion = { readonly key: string } & InputRequest

/** What the user, the model or the client says to a question; `undefined` is no answer in this round. */
export type Answerer = (question: AskedQuestion) => InputResponse | undefined | Promise<InputResponse | undefined>

/** The user accepts: a form with its content, a visit without. */
export function accept(content?: Record<string, FormValue>): ElicitResult {
  return content === undefined ? { action: 'accept' } : { action: 'accept', content }
}

/** The user says no. */
export function decline(): ElicitResult {
  return { action: 'decline' }
}

/** The user dismisses the question without a choice. */
export function cancel(): ElicitResult {
  return { action: 'cancel' }
}

/** From the wire text of a question. */
export function toAsked(key: string, text: string): AskedQuestion {
  return { key, ...(JSON.parse(text) as InputRequest) }
}
