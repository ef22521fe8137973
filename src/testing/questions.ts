// Questions as a client sees them, and its answers.
import type { ElicitResult, FormValue, InputRequest, InputResponse } from '../protocol/messages.ts'

/** A question to the client, with its key. Switch on `method`. */
export type AskedQuestion = { readonly key: string } & InputRequest

/** Returns the answer of the user, the model or the client to a question; `undefined` for no answer in this round. */
export type Answerer = (question: AskedQuestion) => InputResponse | undefined | Promise<InputResponse | undefined>

/** The user accepts. A form needs content, a visit does not. */
export function accept(content?: Record<string, FormValue>): ElicitResult {
  return content === undefined ? { action: 'accept' } : { action: 'accept', content }
}

/** The user declines. */
export function decline(): ElicitResult {
  return { action: 'decline' }
}

/** The user dismisses the question without a choice. */
export function cancel(): ElicitResult {
  return { action: 'cancel' }
}

/** Reads the wire text of a question. */
export function toAsked(key: string, text: string): AskedQuestion {
  return { key, ...(JSON.parse(text) as InputRequest) }
}
