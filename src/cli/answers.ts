// Answers from a file, by the keys of their questions. For scripts, where there is no person to ask.
import { readFile } from 'node:fs/promises'
import type { Capability } from '../client/capabilities.ts'
import type { ServerQuestion } from '../client/answers/question.ts'
import type { InputResponse, PrimitiveSchemaDefinition } from '../protocol/messages.ts'
import { readJsonObject } from './arguments.ts'
import { cleanLine } from './clean.ts'
import { UsageError } from './exit.ts'
import { isObject } from '../protocol/json.ts'

/** By key, as the file has them: the values of a form, a word ("accept", "decline", "cancel"), or a complete answer. */
export type FileAnswers = ReadonlyMap<string, unknown>

export async function readAnswers(path: string): Promise<FileAnswers> {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new UsageError(`The answers cannot be read: ${error.message}`)
  })
  return new Map(Object.entries(readJsonObject(text, path)))
}

/** The capabilities to declare, so that the server asks the questions that the file answers. */
export function answeredBy(answers: FileAnswers): Capability[] {
  const all = [...answers.values()]
  return [
    ...(all.some(isSample) ? (['sampling'] as const) : []),
    ...(all.some((answer) => isObject(answer) && 'roots' in answer) ? (['roots'] as const) : []),
  ]
}

/** The answer to a question, or undefined if the file has none. The client checks whether it is valid. */
export function answerFrom(
  answers: FileAnswers,
  { key, kind }: ServerQuestion,
  keys: readonly string[] = [key],
): InputResponse | undefined {
  const answer = keys.map((each) => answers.get(each)).find((each) => each !== undefined)
  if (answer === undefined) return undefined
  if (kind === 'sample' && isSample(answer)) return { model: 'answers', ...answer } as InputResponse
  if (kind === 'sample' || kind === 'roots') return answer as InputResponse
  if (answer === 'accept' || answer === 'decline' || answer === 'cancel') return { action: answer }
  if (isCompleteAnswer(answer)) return answer as unknown as InputResponse
  return { action: 'accept', content: answer } as InputResponse
}

/** An example of what to put into the file for a question. */
export function exampleOf(question: ServerQuestion): string {
  return `${JSON.stringify(cleanLine(question.key))}: ${JSON.stringify(exampleValue(question))}`
}

function exampleValue(question: ServerQuestion): unknown {
  switch (question.kind) {
    case 'form': {
      const fields = Object.entries(question.form.properties).slice(0, MOST_SHOWN)
      return Object.fromEntries(fields.map(([name, field]) => [cleanLine(name), exampleField(field)]))
    }
    case 'visit':
      return 'accept'
    case 'sample':
      return { role: 'assistant', content: { type: 'text', text: '...' } }
    case 'roots':
      return { roots: [{ uri: 'file:///...' }] }
  }
}

const MOST_SHOWN = 10

function exampleField(field: PrimitiveSchemaDefinition): unknown {
  if (typeof field.default === 'string') return cleanLine(field.default)
  if (field.default !== undefined && !Array.isArray(field.default)) return field.default
  switch (field.type) {
    case 'boolean':
      return true
    case 'number':
    case 'integer':
      return field.minimum ?? 0
    case 'array': {
      const [first] = 'anyOf' in field.items ? field.items.anyOf.map((option) => option.const) : field.items.enum
      return [cleanLine(first ?? '')]
    }
    default:
      if ('oneOf' in field) return cleanLine(field.oneOf[0]?.const ?? '')
      return 'enum' in field ? cleanLine(field.enum[0] ?? '') : '...'
  }
}

/** True for `{ action }` and `{ action, content }`. A form with a field named `action` has other fields beside it. */
function isCompleteAnswer(answer: unknown): answer is { action: string } {
  if (!isObject(answer) || !['accept', 'decline', 'cancel'].includes(answer['action'] as string)) return false
  const { action: _action, content, ...others } = answer
  return Object.keys(others).length === 0 && (content === undefined || isObject(content))
}

function isSample(answer: unknown): answer is Record<string, unknown> {
  return isObject(answer) && 'role' in answer && 'content' in answer
}
