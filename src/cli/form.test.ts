import { expect, test } from 'vitest'
import { hintOf, labelOf, problemWith } from './form.ts'

const field = (schema: Parameters<typeof labelOf>[0]['schema'], isRequired = true) => ({
  name: 'it',
  schema,
  isRequired,
})

test('a label is the title or name, whether it is needed, and what it is for', () => {
  expect(labelOf(field({ type: 'string' }))).toBe('it')
  expect(labelOf(field({ type: 'string', title: 'Name', description: 'In full' }, false))).toBe(
    'Name (optional) - In full',
  )
  expect(labelOf(field({ type: 'string', title: 'a\u001B[2J\nb' }))).toBe('a\\x1b[2J b')
})

test.each([
  { schema: { type: 'string' } as const, isRequired: true, hint: '' },
  { schema: { type: 'string' } as const, isRequired: false, hint: 'Enter to leave it out' },
  { schema: { type: 'string', default: 'x' } as const, isRequired: true, hint: 'Enter for x' },
  { schema: { type: 'string', format: 'date' } as const, isRequired: true, hint: '2026-07-28' },
  {
    schema: { type: 'integer', minimum: 1, maximum: 9 } as const,
    isRequired: false,
    hint: 'a whole number from 1 to 9; Enter to leave it out',
  },
  { schema: { type: 'number', maximum: 2 } as const, isRequired: true, hint: 'a number to 2' },
])('$schema is hinted at as "$hint"', ({ schema, isRequired, hint }) => {
  expect(hintOf(field(schema, isRequired))).toBe(hint)
})

test.each([
  { schema: { type: 'string', minLength: 2 } as const, value: 'a', problem: 'it must have at least 2 characters' },
  { schema: { type: 'integer' } as const, value: 1.5, problem: 'it must be a whole number' },
  { schema: { type: 'number' } as const, value: 'x', problem: 'it must be a number' },
  { schema: { type: 'boolean' } as const, value: undefined, problem: 'it is required' },
  { schema: { type: 'integer' } as const, value: 1, problem: undefined },
])('$value for $schema has the problem: $problem', ({ schema, value, problem }) => {
  expect(problemWith(field(schema), value)).toBe(problem)
})
