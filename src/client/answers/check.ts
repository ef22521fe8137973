// Answers to a server's questions, checked before they are sent: an answer that does not fit would only be asked for again.
import { checkForm, pickForm } from '../../schema/form-answer.ts'
import { isObject, toJsonText } from '../../protocol/json.ts'
import type { FormSchema } from '../../protocol/messages.ts'
import { ClientError } from '../errors.ts'
import { reasonOf, shown } from '../../protocol/text.ts'
import type { ServerQuestion } from './question.ts'

/** The JSON text of an answer, its form's defaults filled in. Throws `ANSWER_INVALID`, and names what does not fit. */
export function answerText(question: ServerQuestion, answer: unknown): string {
  const { key } = question
  if (!isObject(answer)) throw invalid(key, 'it must be an object')
  try {
    return toJsonText(checkedAnswer(question, answer), 'the answer')
  } catch (cause) {
    throw cause instanceof ClientError ? cause : invalid(key, reasonOf(cause), cause)
  }
}

function checkedAnswer(question: ServerQuestion, answer: Record<string, unknown>): Record<string, unknown> {
  switch (question.kind) {
    case 'form':
      return formAnswer(question.key, question.form, answer)
    case 'visit':
      return { action: actionOf(question.key, answer) }
    case 'sample':
      return sampleAnswer(question.key, answer)
    case 'roots':
      return rootsAnswer(question.key, answer)
  }
}

function formAnswer(key: string, form: FormSchema, answer: Record<string, unknown>): Record<string, unknown> {
  const action = actionOf(key, answer)
  if (action !== 'accept') return { action }
  const { content = {} } = answer
  if (!isObject(content)) throw invalid(key, 'its content must be an object')
  const filled = { ...defaultsOf(form), ...pickForm(form, content) }
  const problems = checkForm(form, filled)
  if (problems.length > 0) throw invalid(key, problems.join('; '))
  return { action, content: filled }
}

function defaultsOf({ properties }: FormSchema): Record<string, unknown> {
  const defaults = Object.entries(properties).map(([name, field]): [string, unknown] => [name, field.default])
  return Object.fromEntries(defaults.filter(([, value]) => value !== undefined))
}

function actionOf(key: string, { action }: Record<string, unknown>): string {
  if (action === 'accept' || action === 'decline' || action === 'cancel') return action
  throw invalid(key, 'its action must be "accept", "decline" or "cancel"')
}

function sampleAnswer(key: string, answer: Record<string, unknown>): Record<string, unknown> {
  const { role, content, model } = answer
  if (role !== 'assistant' && role !== 'user') throw invalid(key, 'its role must be "assistant" or "user"')
  if (typeof model !== 'string') throw invalid(key, 'its model must be the name of the model that answered')
  const blocks: unknown[] = Array.isArray(content) ? content : [content]
  if (!blocks.every((block) => isObject(block) && typeof block['type'] === 'string')) {
    throw invalid(key, 'its content must be a content block, or a list of them')
  }
  return answer
}

function rootsAnswer(key: string, answer: Record<string, unknown>): Record<string, unknown> {
  const { roots } = answer
  if (!Array.isArray(roots)) throw invalid(key, 'its roots must be a list')
  for (const root of roots as unknown[]) {
    if (!isObject(root) || typeof root['uri'] !== 'string' || !root['uri'].startsWith('file:')) {
      throw invalid(key, 'each of its roots must have a uri that begins with file:')
    }
  }
  return { roots }
}

function invalid(key: string, why: string, cause?: unknown): ClientError {
  const message = `The answer to ${shown(key)} does not fit: ${why}.`
  return new ClientError('ANSWER_INVALID', message, cause === undefined ? {} : { cause })
}
