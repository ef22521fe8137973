// Has the questions of a round answered: by hand where that was done, and else by the answerers, all of them together.
import type { InputResponses } from '../../protocol/messages.ts'
import { answerText } from './check.ts'
import type { AnswerContext, Answerers } from './answerers.ts'
import type { Capability } from '../capabilities.ts'
import { ClientError } from '../errors.ts'
import { shown } from '../../protocol/text.ts'
import type { ServerQuestion, SampleQuestion } from './question.ts'

/** The text of `inputResponses`: what was answered by hand, and the answerers' answers to the rest, asked for together. */
export async function answerQuestions(
  questions: readonly ServerQuestion[],
  given: ReadonlyMap<string, string>,
  answerers: Answerers,
  can: ReadonlySet<Capability>,
  context: AnswerContext,
): Promise<string> {
  // Before anybody is asked anything in vain.
  const askers = questions.map((question) =>
    given.has(question.key) ? undefined : answererFor(question, answerers, can),
  )
  const texts = await Promise.all(
    questions.map(async (question, index) => {
      const asker = askers[index]
      if (asker === undefined) return given.get(question.key) ?? ''
      return answerText(question, await asker(context))
    }),
  )
  return answersText(questions, texts)
}

/** The text of one answer, by its answerer. */
export async function answerQuestion(
  question: ServerQuestion,
  answerers: Answerers,
  can: ReadonlySet<Capability>,
  context: AnswerContext,
): Promise<string> {
  return answerText(question, await answererFor(question, answerers, can)(context))
}

/** Answers given by hand, each checked; those to questions that were not asked are an error. */
export function readAnswers(questions: readonly ServerQuestion[], responses: InputResponses): Map<string, string> {
  const byKey = new Map(questions.map((question) => [question.key, question]))
  const texts = new Map<string, string>()
  for (const [key, response] of Object.entries(responses)) {
    const question = byKey.get(key)
    if (question === undefined) {
      const asked = questions.map((each) => shown(each.key)).join(', ') || 'nothing'
      throw new ClientError('ANSWER_INVALID', `There is no question ${shown(key)} in this round; it asks ${asked}.`)
    }
    texts.set(key, answerText(question, response))
  }
  return texts
}

type Answerer = (context: AnswerContext) => unknown

/** Who answers a question. Throws `NO_ANSWERER` where nobody does. */
export function answererFor(question: ServerQuestion, answerers: Answerers, can: ReadonlySet<Capability>): Answerer {
  const { onElicit, onVisit, onSample, onRoots } = answerers
  switch (question.kind) {
    case 'form':
      if (onElicit === undefined) throw unanswered(question, 'onElicit')
      return (context) => onElicit(question, context)
    case 'visit':
      if (onVisit === undefined) throw unanswered(question, 'onVisit')
      return (context) => onVisit(question, context)
    case 'sample': {
      const answer = typeof onSample === 'object' ? onSample.answer : onSample
      if (answer === undefined) throw unanswered(question, 'onSample')
      const undeclared = undeclaredIn(question, can)
      if (undeclared !== undefined) throw unanswered(question, `onSample: { answer, ${undeclared}: true }`)
      return (context) => answer(question, context)
    }
    case 'roots':
      if (onRoots === undefined) throw unanswered(question, 'onRoots')
      return async (context) => ({ roots: await onRoots(question, context) })
  }
}

/** What a prompt needs beyond a model, and was not told that it may have. */
function undeclaredIn(question: SampleQuestion, can: ReadonlySet<Capability>): 'tools' | 'context' | undefined {
  const { tools, toolChoice, includeContext = 'none' } = question
  if ((tools !== undefined || toolChoice !== undefined) && !can.has('sampling.tools')) return 'tools'
  return includeContext !== 'none' && !can.has('sampling.context') ? 'context' : undefined
}

const ASKED = { form: 'a form', visit: 'a page to visit', sample: "the client's model", roots: "the client's roots" }

function unanswered({ kind, key }: ServerQuestion, option: string): ClientError {
  return new ClientError(
    'NO_ANSWERER',
    `The server asks ${shown(key)}, a question of ${ASKED[kind]}, and nobody here answers it: give connect ${option}.`,
  )
}

function answersText(questions: readonly ServerQuestion[], texts: readonly string[]): string {
  return `{${questions.map(({ key }, index) => `${JSON.stringify(key)}:${texts[index]}`).join(',')}}`
}
