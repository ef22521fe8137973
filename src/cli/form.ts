// Asks the person at the terminal to fill in a form, field by field, or to decline it.
import type { FormQuestion } from '../client/answers/question.ts'
import type { ElicitResult, FormValue, PrimitiveSchemaDefinition } from '../protocol/messages.ts'
import { checkForm } from '../schema/form-answer.ts'
import { readNumber } from './arguments.ts'
import { cleanLine, cleanMessage } from './clean.ts'
import { Escaped } from './prompts.ts'
import type { Choice, Prompts } from './prompts.ts'

export async function fillIn({ message, form }: FormQuestion, prompts: Prompts): Promise<ElicitResult> {
  prompts.say(cleanMessage(message))
  const fields = Object.entries(form.properties)
  const required = new Set(form.required)
  const content = new Map<string, FormValue>()
  for (;;) {
    try {
      for (const [name, schema] of fields) {
        const isRequired = required.has(name)
        const value = await askField({ name, schema, isRequired, before: content.get(name) }, prompts)
        if (value === undefined) content.delete(name)
        else content.set(name, value)
      }
      const action = fields.length === 1 ? 'accept' : await review(fields.length, prompts)
      if (action === 'accept') return { action, content: Object.fromEntries(content) }
      if (action !== 'change') return { action }
    } catch (error) {
      if (!(error instanceof Escaped)) throw error
      const action = await askHowToLeave(prompts)
      if (action !== 'back') return { action }
    }
  }
}

/** Several answers are reviewed before any of them is sent. */
function review(fields: number, prompts: Prompts): Promise<'accept' | 'change' | 'decline'> {
  return prompts.choose('Send this?', [
    { value: 'accept', label: 'Send' },
    ...(fields > 0 ? [{ value: 'change' as const, label: 'Change' }] : []),
    { value: 'decline', label: 'Decline' },
  ])
}

/** Asks how to leave a question. Escape here returns to the question. */
export async function askHowToLeave(prompts: Prompts): Promise<'back' | 'decline' | 'cancel'> {
  try {
    return await prompts.choose('Leave the question?', [
      { value: 'back', label: 'Go back to it' },
      { value: 'decline', label: 'Decline', hint: 'say no to the server' },
      { value: 'cancel', label: 'Cancel', hint: 'close it without an answer' },
    ])
  } catch (error) {
    if (error instanceof Escaped) return 'back'
    throw error
  }
}

export interface Field {
  readonly name: string
  readonly schema: PrimitiveSchemaDefinition
  readonly isRequired: boolean
  /** The previous answer, if the field is asked again. */
  readonly before: FormValue | undefined
}

/** The user's answer, or undefined if they leave the field out. */
function askField(field: Field, prompts: Prompts): Promise<FormValue | undefined> {
  const { schema } = field
  switch (schema.type) {
    case 'boolean':
      return askBoolean(field, prompts)
    case 'array':
      return askSeveral(field, optionsOf(schema), prompts)
    case 'number':
    case 'integer':
      return askTyped(field, (text) => readNumber(text) ?? text, prompts)
    default: {
      const options = optionsOf(schema)
      return options.length > 0 ? askOne(field, options, prompts) : askTyped(field, (text) => text, prompts)
    }
  }
}

/** The title or name of a field, and its description. */
export function labelOf({ name, schema, isRequired }: Omit<Field, 'before'>): string {
  const title = cleanLine(schema.title ?? name)
  const description = schema.description === undefined ? '' : ` - ${cleanLine(schema.description)}`
  return `${title}${isRequired ? '' : ' (optional)'}${description}`
}

/** What to type, and what an empty answer means. */
export function hintOf({ schema, isRequired }: Omit<Field, 'before'>): string {
  const { default: preset } = schema
  if (preset !== undefined) return `Enter for ${cleanLine(String(preset), 60)}`
  const wanted = wantedOf(schema)
  if (isRequired) return wanted
  return wanted === '' ? 'Enter to leave it out' : `${wanted}; Enter to leave it out`
}

/** What is wrong with a value, if anything. */
export function problemWith({ name, schema, isRequired }: Omit<Field, 'before'>, value: unknown): string | undefined {
  const form = { type: 'object' as const, properties: { [name]: schema }, ...(isRequired && { required: [name] }) }
  const [problem] = checkForm(form, value === undefined ? {} : { [name]: value })
  return problem === undefined ? undefined : cleanLine(problem)
}

async function askTyped(
  field: Field,
  read: (text: string) => FormValue,
  prompts: Prompts,
): Promise<FormValue | undefined> {
  const { schema, isRequired, before } = field
  const text = await prompts.text(labelOf(field), {
    placeholder: hintOf(field),
    ...(before !== undefined && { initial: String(before) }),
    check: (typed) => {
      if (typed !== '') return problemWith(field, read(typed))
      return isRequired && schema.default === undefined ? 'This field is required.' : undefined
    },
  })
  return text === '' ? (schema.default ?? undefined) : read(text)
}

async function askBoolean(field: Field, prompts: Prompts): Promise<FormValue | undefined> {
  const { schema, isRequired, before } = field
  const initial = (before ?? schema.default) as boolean | undefined
  if (isRequired || initial !== undefined) return prompts.confirm(labelOf(field), initial ?? false)
  const choices: Choice<boolean | undefined>[] = [
    LEFT_OUT,
    { value: true, label: 'Yes' },
    { value: false, label: 'No' },
  ]
  return prompts.choose(labelOf(field), choices)
}

async function askOne(
  field: Field,
  options: readonly Choice<string>[],
  prompts: Prompts,
): Promise<FormValue | undefined> {
  const { schema, isRequired, before } = field
  const mayLeaveOut = !isRequired && schema.default === undefined
  const choices: readonly Choice<string | undefined>[] = mayLeaveOut ? [LEFT_OUT, ...options] : options
  const at = choices.findIndex(({ value }) => value !== undefined && value === (before ?? schema.default))
  return prompts.choose(labelOf(field), choices, Math.max(at, 0))
}

async function askSeveral(
  field: Field,
  options: readonly Choice<string>[],
  prompts: Prompts,
): Promise<FormValue | undefined> {
  const { schema, isRequired } = field
  let chosen = (field.before ?? schema.default ?? []) as readonly string[]
  for (;;) {
    const initial = options.flatMap(({ value }, index) => (chosen.includes(value) ? [index] : []))
    const values = await prompts.chooseSeveral(labelOf(field), options, initial)
    // A field with a default cannot be left out: the default would apply.
    if (values.length === 0 && !isRequired && schema.default === undefined) return undefined
    const problem = problemWith(field, values)
    if (problem === undefined) return values
    prompts.warn(problem)
    chosen = values
  }
}

const LEFT_OUT = { value: undefined, label: '(leave it out)' }

function optionsOf(schema: PrimitiveSchemaDefinition): Choice<string>[] {
  if (schema.type === 'array') {
    return 'anyOf' in schema.items ? schema.items.anyOf.map(titled) : schema.items.enum.map(untitled)
  }
  if ('oneOf' in schema) return schema.oneOf.map(titled)
  if (!('enum' in schema)) return []
  const { enumNames = [] } = schema as { enumNames?: string[] }
  return schema.enum.map((value, index) => titled({ const: value, title: enumNames[index] ?? value }))
}

function titled({ const: value, title }: { const: string; title: string }): Choice<string> {
  return { ...untitled(value), label: cleanLine(title), ...(title !== value && { hint: cleanLine(value) }) }
}

function untitled(value: string): Choice<string> {
  return { value, label: cleanLine(value) }
}

function wantedOf(schema: PrimitiveSchemaDefinition): string {
  if (schema.type === 'string' && 'format' in schema) return FORMATS[schema.format ?? ''] ?? ''
  if (schema.type !== 'number' && schema.type !== 'integer') return ''
  const { type, minimum, maximum } = schema
  const kind = type === 'integer' ? 'a whole number' : 'a number'
  const from = minimum === undefined ? '' : ` from ${minimum}`
  return `${kind}${from}${maximum === undefined ? '' : ` to ${maximum}`}`
}

const FORMATS: Readonly<Record<string, string>> = {
  email: 'name@example.com',
  uri: 'https://example.com/',
  date: '2026-07-28',
  'date-time': '2026-07-28T12:00:00Z',
}
