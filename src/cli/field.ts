// Asks for one field of a form, whatever its kind: text, a number, a switch, a choice or several.
import { checkForm } from '../schema/form-answer.ts'
import type { FormValue, PrimitiveSchemaDefinition } from '../protocol/messages.ts'
import { readNumber } from './arguments.ts'
import { cleanLine } from './clean.ts'
import type { Choice, Prompts } from './prompts.ts'

export interface Field {
  readonly name: string
  readonly schema: PrimitiveSchemaDefinition
  readonly isRequired: boolean
  /** What was answered before, where it is asked again. */
  readonly before: FormValue | undefined
}

/** What the user says, or nothing where they leave it out. */
export function askField(field: Field, prompts: Prompts): Promise<FormValue | undefined> {
  const { schema } = field
  switch (schema.type) {
    case 'boolean':
      return askSwitch(field, prompts)
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

/** Its title or name, and what it is for. */
export function labelOf({ name, schema, isRequired }: Omit<Field, 'before'>): string {
  const title = cleanLine(schema.title ?? name)
  const description = schema.description === undefined ? '' : ` - ${cleanLine(schema.description)}`
  return `${title}${isRequired ? '' : ' (optional)'}${description}`
}

/** What may be typed, and what an empty answer is. */
export function hintOf({ schema, isRequired }: Omit<Field, 'before'>): string {
  const { default: preset } = schema
  if (preset !== undefined) return `Enter for ${cleanLine(String(preset), 60)}`
  const wanted = wantedOf(schema)
  if (isRequired) return wanted
  return wanted === '' ? 'Enter to leave it out' : `${wanted}; Enter to leave it out`
}

/** What is wrong with it, if something is. */
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
      return isRequired && schema.default === undefined ? 'This one is needed.' : undefined
    },
  })
  return text === '' ? (schema.default ?? undefined) : read(text)
}

async function askSwitch(field: Field, prompts: Prompts): Promise<FormValue | undefined> {
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
    // With a default, leaving it out would be that.
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
