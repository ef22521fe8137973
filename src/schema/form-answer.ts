// Checks an answer against the form that asked for it. The answer is untrusted: nothing here throws, and inherited
// properties are never read.
import type {
  FormSchema,
  NumberSchema,
  PrimitiveSchemaDefinition,
  StringSchema,
  TitledMultiSelectEnumSchema,
  UntitledMultiSelectEnumSchema,
} from '../protocol/messages.ts'
import { hasFormat } from './formats.ts'
import { isObject, pathText } from '../protocol/json.ts'

const MOST_PROBLEMS = 10
const MOST_NAMED = 10

/** The problems of an answer, each as a sentence that names the property. Empty if it is valid. Extra properties are ignored. */
export function checkForm(form: FormSchema, content: unknown): string[] {
  if (!isObject(content)) return ['the answer must be an object']
  const required = new Set(form.required)
  const problems: string[] = []
  for (const [name, field] of Object.entries(form.properties)) {
    const value = own(content, name)
    const problem = value === undefined ? required.has(name) && 'is required' : problemOf(field, value)
    if (problem) problems.push(`${pathText([name])} ${problem}`)
    if (problems.length === MOST_PROBLEMS) break
  }
  return problems
}

/** A new object with those properties of the answer that the form has. */
export function pickForm(form: FormSchema, content: unknown): Record<string, unknown> {
  if (!isObject(content)) return {}
  const entries = Object.keys(form.properties).map((name): [string, unknown] => [name, own(content, name)])
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined))
}

function own(content: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(content, name) ? content[name] : undefined
}

function problemOf(field: PrimitiveSchemaDefinition, value: unknown): string | undefined {
  switch (field.type) {
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'must be true or false'
    case 'number':
    case 'integer':
      return numberProblem(field, value)
    case 'array':
      return selectionProblem(field, value)
    default:
      if (typeof value !== 'string') return 'must be a string'
      if ('oneOf' in field) return choiceProblem(constsOf(field.oneOf), value)
      return 'enum' in field ? choiceProblem(field.enum, value) : textProblem(field, value)
  }
}

function numberProblem(field: NumberSchema, value: unknown): string | undefined {
  if (typeof value !== 'number' || !Number.isFinite(value)) return 'must be a number'
  if (field.type === 'integer' && !Number.isInteger(value)) return 'must be a whole number'
  if (field.minimum !== undefined && value < field.minimum) return `must be at least ${field.minimum}`
  if (field.maximum !== undefined && value > field.maximum) return `must be at most ${field.maximum}`
  return undefined
}

function textProblem(field: StringSchema, text: string): string | undefined {
  const { minLength = 0, maxLength = Infinity, format } = field
  const length = lengthOf(text)
  if (length < minLength) return `must have at least ${minLength} characters`
  if (length > maxLength) return `must have at most ${maxLength} characters`
  return format === undefined || hasFormat(format, text) ? undefined : `must be ${NAMES[format]}`
}

const NAMES = {
  email: 'an email address',
  uri: 'a full URI, such as https://example.com/',
  date: 'a date, such as 2026-07-28',
  'date-time': 'a date and time with its offset, such as 2026-07-28T12:00:00Z',
}

/** JSON Schema counts code points. */
function lengthOf(text: string): number {
  let length = 0
  for (const _ of text) length++
  return length
}

function choiceProblem(options: readonly string[], value: string): string | undefined {
  return options.includes(value) ? undefined : `must be one of ${listed(options)}`
}

function selectionProblem(
  field: UntitledMultiSelectEnumSchema | TitledMultiSelectEnumSchema,
  value: unknown,
): string | undefined {
  if (!Array.isArray(value)) return 'must be a list'
  const { minItems = 0, maxItems = Infinity } = field
  if (value.length < minItems) return `must have at least ${minItems} chosen`
  if (value.length > maxItems) return `must have at most ${maxItems} chosen`
  const options = 'anyOf' in field.items ? constsOf(field.items.anyOf) : field.items.enum
  const known = new Set<unknown>(options)
  return value.every((item) => known.has(item)) ? undefined : `may only contain ${listed(options)}`
}

function constsOf(options: readonly { const: string }[]): string[] {
  return options.map((option) => option.const)
}

function listed(options: readonly string[]): string {
  const more = options.length > MOST_NAMED ? ', …' : ''
  return options.slice(0, MOST_NAMED).join(', ') + more
}
