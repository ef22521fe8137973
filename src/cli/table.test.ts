import { expect, test } from 'vitest'
import { table } from './table.ts'

const rows = [
  ['short', 'a=string', 'What it does, at some length'],
  ['much-longer', '', 'line\nbreak \u001B[2J'],
]

test('columns line up, and the last takes what is left of the screen', () => {
  expect(table(['NAME', 'ARGUMENTS', 'DESCRIPTION'], rows, 48)).toEqual([
    'NAME         ARGUMENTS  DESCRIPTION',
    'short        a=string   What it does, at some...',
    'much-longer             line break \\x1b[2J',
  ])
})

test('nothing is cut where there is no screen', () => {
  expect(table(['NAME', 'ARGUMENTS', 'DESCRIPTION'], rows, Infinity)[1]).toMatch(/at some length$/)
})

test('a name that is too wide for its column is whole all the same', () => {
  const name = 'n'.repeat(60)
  expect(table(['NAME', 'DESCRIPTION'], [[name, 'about']], 80)[1]).toBe(`${name}  about`)
})
