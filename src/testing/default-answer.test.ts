import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyForm } from '../../test/spec/forms.ts'
import { specValidator } from '../../test/spec/validate.ts'
import { checkForm } from '../schema/form-answer.ts'
import type { FormSchema, InputResponse, PrimitiveSchemaDefinition } from '../protocol/messages.ts'
import { madeUp } from '../testing.ts'

describe('a made-up answer', () => {
  test('fits every form that can be fitted', () => {
    fc.assert(
      fc.property(anyForm, (form) => {
        fc.pre(Object.values(form.properties).every(canBeFitted))
        expect(checkForm(form, contentFor(form))).toEqual([])
      }),
      { numRuns: 500 },
    )
  })

  test.each<{ field: PrimitiveSchemaDefinition; value: unknown }>([
    { field: { type: 'boolean' }, value: true },
    { field: { type: 'boolean', default: false }, value: false },
    { field: { type: 'number' }, value: 1 },
    { field: { type: 'number', maximum: 0.5 }, value: 0.5 },
    { field: { type: 'integer', maximum: 0.5 }, value: 0 },
    { field: { type: 'integer', minimum: 2.5 }, value: 3 },
    { field: { type: 'string', minLength: 6 }, value: 'text..' },
    { field: { type: 'string', maxLength: 2 }, value: 'te' },
    { field: { type: 'string', format: 'email', minLength: 20 }, value: 'adaaaaaa@example.com' },
    { field: { type: 'string', format: 'date' }, value: '2026-07-28' },
    { field: { type: 'string', enum: ['S', 'M'] }, value: 'S' },
    { field: { type: 'string', oneOf: [{ const: 'S', title: 'Small' }] }, value: 'S' },
    { field: { type: 'array', items: { type: 'string', enum: ['S', 'M', 'L'] }, minItems: 2 }, value: ['S', 'M'] },
    { field: { type: 'array', items: { anyOf: [{ const: 'S', title: 'Small' }] } }, value: ['S'] },
  ])('to $field is $value', ({ field, value }) => {
    expect(contentFor({ type: 'object', properties: { field } })).toEqual({ field: value })
  })

  test.each<{ answer: InputResponse; definition: string }>([
    {
      answer: madeUp({
        key: 'a',
        method: 'elicitation/create',
        params: { mode: 'url', message: 'Go.', url: 'https://a.b' },
      }),
      definition: 'ElicitResult',
    },
    {
      answer: madeUp({ key: 'a', method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } }),
      definition: 'CreateMessageResult',
    },
    { answer: madeUp({ key: 'a', method: 'roots/list' }), definition: 'ListRootsResult' },
  ])('to any other question is a $definition', ({ answer, definition }) => {
    expect(specValidator(definition)(answer)).toEqual([])
  })
})

function contentFor(requestedSchema: FormSchema): Record<string, unknown> {
  const answer = madeUp({ key: 'a', method: 'elicitation/create', params: { message: 'A?', requestedSchema } })
  return ('content' in answer && (answer.content as Record<string, unknown>)) || {}
}

/** Whether the bounds of a field leave anything, and its own default is within them. */
function canBeFitted(field: PrimitiveSchemaDefinition): boolean {
  const { default: given, ...rest } = field
  const free = { type: 'object', properties: { field: rest as PrimitiveSchemaDefinition } } as const
  if (given !== undefined) return checkForm(free, { field: given }).length === 0
  if ('minimum' in field || 'maximum' in field) return (field.minimum ?? -Infinity) <= (field.maximum ?? Infinity)
  if ('minLength' in field || 'maxLength' in field) return (field.minLength ?? 0) <= (field.maxLength ?? Infinity)
  if (field.type !== 'array') return true
  const options = 'anyOf' in field.items ? field.items.anyOf : field.items.enum
  return (field.minItems ?? 0) <= Math.min(field.maxItems ?? Infinity, options.length)
}
