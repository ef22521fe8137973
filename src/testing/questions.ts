// Questions as a client sees them, and its answers.
import { RallyError } from '../protocol/errors.ts'
import { isObject } from '../protocol/json.ts'
import { shown } from '../protocol/text.ts'
import type { ElicitResult, FormValue, InputRequest, InputResponse } from '../protocol/messages.ts'

/** A question to the client, with its key. Switch on `method`. */
export type AskedQuestion = { readonly key: string } & InputRequest

/** Returns the answer of the user, the model or the client to a question; `undefined` for no answer in this round. */
export type Answerer = (question: AskedQuestion) => InputResponse | undefined | Promise<InputResponse | undefined>

/** The same, which throws if it returns something else than an answer. */
export function checkedAnswerer(answer: Answerer): Answerer {
  return (question) => {
    const given = answer(question)
    return given instanceof Promise ? given.then((later) => checked(later, question)) : checked(given, question)
  }
}

/** Of the answer of a user, of a model, and of roots. */
const ANSWER_MEMBERS = ['action', 'role', 'roots']

function checked(given: InputResponse | undefined, { key }: AskedQuestion): InputResponse | undefined {
  if (given === undefined || (isObject(given) && ANSWER_MEMBERS.some((name) => name in given))) return given
  throw new RallyError(
    'UNANSWERED',
    `The question "${key}": \`answer\` must return an answer or undefined, got ${shown(given)}. Return accept({ ... }), decline() or cancel().`,
  )
}

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
