// An answer to any question that matches what the wire says about the question.
import type {
  FormValue,
  InputResponse,
  NumberSchema,
  PrimitiveSchemaDefinition,
  StringFormat,
  StringSchema,
} from '../protocol/messages.ts'
import type { AskedQuestion } from './questions.ts'
import { accept } from './questions.ts'

/**
 * The default answerer. Accepts every form with its default values, or else with true, the first option, a short text or a small
 * number. Accepts every visit, says "ok" as the model, and has one root. It does not know rules that the wire cannot carry, such
 * as a pattern: answer those questions yourself.
 */
export function madeUp(question: AskedQuestion): InputResponse {
  switch (question.method) {
    case 'elicitation/create': {
      const { params } = question
      if (params.mode === 'url') return accept()
      const fields = Object.entries(params.requestedSchema.properties)
      return accept(Object.fromEntries(fields.map(([name, field]) => [name, valueFor(field)])))
    }
    case 'sampling/createMessage':
      return { role: 'assistant', content: { type: 'text', text: 'ok' }, model: 'made-up' }
    case 'roots/list':
      return { roots: [{ uri: 'file:///made-up', name: 'made-up' }] }
  }
}

function valueFor(field: PrimitiveSchemaDefinition): FormValue {
  if (field.default !== undefined) return field.default
  switch (field.type) {
    case 'boolean':
      return true
    case 'number':
    case 'integer':
      return numberFor(field)
    case 'array': {
      const options = 'anyOf' in field.items ? field.items.anyOf.map((option) => option.const) : field.items.enum
      return options.slice(0, Math.min(Math.max(field.minItems ?? 0, 1), field.maxItems ?? options.length))
    }
    case 'string':
      if ('oneOf' in field) return field.oneOf[0]?.const ?? ''
      if ('enum' in field) return field.enum[0] ?? ''
      return textFor(field)
  }
}

function numberFor({ type, minimum, maximum = Infinity }: NumberSchema): number {
  if (minimum !== undefined) return type === 'integer' ? Math.ceil(minimum) : minimum
  return type === 'integer' ? Math.floor(Math.min(1, maximum)) : Math.min(1, maximum)
}

const EXAMPLES: Readonly<Record<StringFormat, (padding: string) => string>> = {
  email: (padding) => `ada${padding}@example.com`,
  uri: (padding) => `https://example.com/${padding}`,
  date: () => '2026-07-28',
  'date-time': () => '2026-07-28T12:00:00Z',
}

function textFor({ format, minLength = 0, maxLength = Infinity }: StringSchema): string {
  if (format === undefined) return 'text'.padEnd(minLength, '.').slice(0, maxLength)
  const example = EXAMPLES[format]
  return example('a'.repeat(Math.max(minLength - example('').length, 0)))
}
