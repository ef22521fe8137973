// Gets the questions of a round answered, by hand or by the answerers, and checks each answer before it is sent. The server
// would only ask again for an answer that does not match its question.
import { assertJson, isObject } from '../../protocol/json.ts'
import type { FormSchema, InputResponses } from '../../protocol/messages.ts'
import { reasonOf, shown } from '../../protocol/text.ts'
import { checkForm, pickForm } from '../../schema/form-answer.ts'
import type { Capability } from '../capabilities.ts'
import { ClientError, sentence } from '../errors.ts'
import type { AnswerContext, Answerers } from './answerers.ts'
import type { SampleQuestion, ServerQuestion } from './question.ts'

/** An answer that was checked: plain JSON, in the form that the protocol sends. */
export type CheckedAnswer = Readonly<Record<string, unknown>>

/** By the keys of the questions. */
export type CheckedAnswers = Readonly<Record<string, CheckedAnswer>>

/** Who answers, and which capabilities the client declared. */
export interface AnswerSources {
  readonly answerers: Answerers
  readonly can: ReadonlySet<Capability>
}

/** Returns the answers given by hand, and those of the answerers to all other questions, which are asked at once. */
export async function answerQuestions(
  questions: readonly ServerQuestion[],
  given: ReadonlyMap<string, CheckedAnswer>,
  sources: AnswerSources,
  context: AnswerContext,
): Promise<CheckedAnswers> {
  // Looked up before anything is asked: the user should not answer one question when another cannot be answered.
  const asked = questions.map((question) => {
    const answer = given.get(question.key)
    return answer === undefined ? answererFor(question, sources) : async () => answer
  })
  const answers = await Promise.all(asked.map((answer) => answer(context)))
  return Object.fromEntries(questions.map(({ key }, index) => [key, answers[index] ?? {}]))
}

/** Checks answers given by hand. Throws `ANSWER_INVALID` for a key that was not asked. */
export function readAnswers(
  questions: readonly ServerQuestion[],
  responses: InputResponses,
): Map<string, CheckedAnswer> {
  const byKey = new Map(questions.map((question) => [question.key, question]))
  const answers = new Map<string, CheckedAnswer>()
  for (const [key, response] of Object.entries(responses)) {
    const question = byKey.get(key)
    if (question === undefined) {
      const keys = questions.map((each) => shown(each.key)).join(', ')
      throw new ClientError(
        'ANSWER_INVALID',
        `This round has no question ${shown(key)}. ${keys === '' ? 'It has none' : `Its questions are ${keys}`}.`,
      )
    }
    answers.set(key, checkAnswer(question, response))
  }
  return answers
}

export type Answerer = (context: AnswerContext) => Promise<CheckedAnswer>

/** Returns a function that gets the question answered. Throws `NO_ANSWERER` if the client cannot. */
export function answererFor(question: ServerQuestion, { answerers, can }: AnswerSources): Answerer {
  const { onElicit, onVisit, onSample, onRoots } = answerers
  switch (question.kind) {
    case 'form':
      if (onElicit === undefined) throw noAnswerer(question, 'onElicit')
      return async (context) => checkAnswer(question, await onElicit(question, context))
    case 'visit':
      if (onVisit === undefined) throw noAnswerer(question, 'onVisit')
      return async (context) => checkAnswer(question, await onVisit(question, context))
    case 'sample': {
      const answer = typeof onSample === 'object' ? onSample.answer : onSample
      if (answer === undefined) throw noAnswerer(question, 'onSample')
      const missing = undeclaredIn(question, can)
      if (missing !== undefined) throw noAnswerer(question, `onSample: { answer, ${missing}: true }`)
      return async (context) => checkAnswer(question, await answer(question, context))
    }
    case 'roots':
      if (onRoots === undefined) throw noAnswerer(question, 'onRoots')
      return async (context) => checkAnswer(question, { roots: await onRoots(question, context) })
  }
}

/** Fills in the defaults of a form. Throws `ANSWER_INVALID` and names every field that does not match. */
export function checkAnswer(question: ServerQuestion, answer: unknown): CheckedAnswer {
  const { key } = question
  if (!isObject(answer)) throw invalid(key, `it must be an object, got ${shown(answer)}`)
  try {
    const checked = checkByKind(question, answer)
    assertJson(checked, 'the answer')
    return checked
  } catch (cause) {
    throw cause instanceof ClientError ? cause : invalid(key, reasonOf(cause), cause)
  }
}

/** A capability that a prompt needs beyond a plain model, and that the client has not declared. */
function undeclaredIn(question: SampleQuestion, can: ReadonlySet<Capability>): 'tools' | 'context' | undefined {
  const { tools, toolChoice, includeContext = 'none' } = question
  if ((tools !== undefined || toolChoice !== undefined) && !can.has('sampling.tools')) return 'tools'
  return includeContext !== 'none' && !can.has('sampling.context') ? 'context' : undefined
}

const KIND_NAMES = { form: 'a form', visit: 'a page to visit', sample: 'a model prompt', roots: 'a list of roots' }

function noAnswerer({ kind, key }: ServerQuestion, option: string): ClientError {
  return new ClientError(
    'NO_ANSWERER',
    `The server asks ${shown(key)} (${KIND_NAMES[kind]}), and this client has no answerer for it. Pass ${option} to connect().`,
  )
}

function checkByKind(question: ServerQuestion, answer: Record<string, unknown>): CheckedAnswer {
  switch (question.kind) {
    case 'form':
      return checkFormAnswer(question.key, question.form, answer)
    case 'visit':
      return { action: actionOf(question.key, answer) }
    case 'sample':
      return checkSample(question.key, answer)
    case 'roots':
      return checkRoots(question.key, answer)
  }
}

function checkFormAnswer(key: string, form: FormSchema, answer: Record<string, unknown>): CheckedAnswer {
  const action = actionOf(key, answer)
  if (action !== 'accept') return { action }
  const { content = {} } = answer
  if (!isObject(content)) throw invalid(key, `its content must be an object, got ${shown(content)}`)
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
  throw invalid(key, `its action must be "accept", "decline" or "cancel", got ${shown(action)}`)
}

function checkSample(key: string, answer: Record<string, unknown>): CheckedAnswer {
  const { role, content, model } = answer
  if (role !== 'assistant' && role !== 'user') {
    throw invalid(key, `its role must be "assistant" or "user", got ${shown(role)}`)
  }
  if (typeof model !== 'string') {
    throw invalid(key, `its model must be the name of the model that answered, got ${shown(model)}`)
  }
  const blocks: unknown[] = Array.isArray(content) ? content : [content]
  if (!blocks.every((block) => isObject(block) && typeof block['type'] === 'string')) {
    throw invalid(key, 'its content must be a content block or a list of content blocks')
  }
  return answer
}

function checkRoots(key: string, { roots }: Record<string, unknown>): CheckedAnswer {
  if (!Array.isArray(roots)) throw invalid(key, `its roots must be a list, got ${shown(roots)}`)
  for (const root of roots as unknown[]) {
    if (!isObject(root) || typeof root['uri'] !== 'string' || !root['uri'].startsWith('file:')) {
      throw invalid(key, 'each of its roots must have a uri that begins with file:')
    }
  }
  return { roots }
}

function invalid(key: string, why: string, cause?: unknown): ClientError {
  const message = sentence(`The answer to ${shown(key)} does not match its question: ${why}`)
  return new ClientError('ANSWER_INVALID', message, cause === undefined ? {} : { cause })
}
