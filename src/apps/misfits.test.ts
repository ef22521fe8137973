import { expect, test } from 'vitest'
import type { InputRequests } from '../protocol/messages.ts'
import { withIssues } from './misfits.ts'

const NOTE = 'The last answer did not fit: '

function asked(message: string): InputRequests {
  const properties = { name: { type: 'string' }, 'zip code': { type: 'string' }, tags: { type: 'array' } }
  return {
    q: { method: 'elicitation/create', params: { mode: 'form', message, requestedSchema: { properties } } },
  } as never
}

test.each([
  { note: 'name must have at least 2 characters', fields: { name: 'Must have at least 2 characters' } },
  { note: 'name: Too small: expected 2', fields: { name: 'Too small: expected 2' } },
  { note: '/name type "number" is invalid', fields: { name: 'Type "number" is invalid' } },
  { note: '["zip code"] is required; name is bad', fields: { 'zip code': 'Is required', name: 'Is bad' } },
  { note: 'tags[1]: not known', fields: { tags: 'Not known' } },
  { note: 'name is bad; and this too', fields: { name: 'Is bad; and this too' } },
  { note: 'name: a; name: b', fields: { name: 'A; b' } },
])('finds the fields of "$note"', ({ note, fields }) => {
  const { questions, issues } = withIssues(asked(`What?\n\n${NOTE}${note}`))
  expect(issues).toEqual({ q: fields })
  expect(questions['q']?.params).toMatchObject({ message: 'What?' })
})

test('leaves in the message what names no field', () => {
  const mixed = withIssues(asked(`What?\n\n${NOTE}the answers differ; name is bad`))
  expect(mixed.questions['q']?.params).toMatchObject({ message: `What?\n\n${NOTE}the answers differ` })
  const plain = asked(`What?\n\n${NOTE}namely nothing`)
  expect(withIssues(plain)).toEqual({ questions: plain })
  const unnoted = asked('name is what?')
  expect(withIssues(unnoted)).toEqual({ questions: unnoted })
})
