// What the server found wrong with the last answer, for each field. A question that is asked again says it in its message, because a
// client shows nothing else. A page shows it beside the field.
import { MISFIT_NOTE } from '../flow/answering.ts'
import { isObject, pathText } from '../protocol/json.ts'
import type { InputRequests } from '../protocol/messages.ts'

/** By the key of the question, then by the name of the field. */
export type FieldIssues = Readonly<Record<string, Readonly<Record<string, string>>>>

export interface PageQuestions {
  readonly questions: InputRequests
  /** Absent if nothing is wrong with a field. */
  readonly issues?: FieldIssues
}

/** Moves what the messages say about fields out of them. */
export function withIssues(questions: InputRequests): PageQuestions {
  const changed: Record<string, InputRequests[string]> = {}
  const issues: Record<string, Record<string, string>> = {}
  for (const [key, question] of Object.entries(questions)) {
    const { message, requestedSchema } = (question.params ?? {}) as { message?: unknown; requestedSchema?: unknown }
    const properties = isObject(requestedSchema) ? requestedSchema['properties'] : undefined
    const at = typeof message === 'string' ? message.lastIndexOf(`\n\n${MISFIT_NOTE}`) : -1
    if (typeof message !== 'string' || at === -1 || !isObject(properties)) continue
    const { fields, rest } = byField(message.slice(at + 2 + MISFIT_NOTE.length), Object.keys(properties))
    if (Object.keys(fields).length === 0) continue
    issues[key] = fields
    const text = message.slice(0, at) + (rest === '' ? '' : `\n\n${MISFIT_NOTE}${rest}`)
    changed[key] = { ...question, params: { ...question.params, message: text } } as InputRequests[string]
  }
  return Object.keys(issues).length === 0 ? { questions } : { questions: { ...questions, ...changed }, issues }
}

/** The issues are joined by semicolons, and each names its field first. What names none belongs to the issue before it. */
function byField(text: string, names: readonly string[]): { fields: Record<string, string>; rest: string } {
  const fields: Record<string, string> = Object.create(null) as Record<string, string>
  const rest: string[] = []
  let last: string | undefined
  for (const part of text.split('; ')) {
    const name = names.find((each) => issueOf(part, each) !== undefined)
    if (name !== undefined) {
      last = name
      const issue = issueOf(part, name) ?? ''
      fields[name] = fields[name] === undefined ? sentence(issue) : `${fields[name]}; ${issue}`
    } else if (last === undefined) rest.push(part)
    else fields[last] += `; ${part}`
  }
  return { fields, rest: rest.join('; ') }
}

/** Validators write `name: issue`, `name issue` or `/name issue`, and add to the name where the value is a list. */
function issueOf(part: string, name: string): string | undefined {
  const path = [pathText([name]), `/${name}`].find((each) => part.startsWith(each))
  const [, issue] = path === undefined ? [] : (/^(?:[[/.][^\s:]*)?:? (.+)$/s.exec(part.slice(path.length)) ?? [])
  return issue
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
