import { expect, test } from 'vitest'
import type { Tool } from '../protocol/messages.ts'
import { Tools } from './tools.ts'

const properties = (count: number): Record<string, object> =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`p${n}`, { type: 'string' }]))

const tool = (name: string, count: number): Tool => ({
  name,
  inputSchema: { type: 'object', properties: properties(count) },
})

test('the input schemas of a list are searched for headers up to a size, and the tools after that are left out', () => {
  const warned: unknown[] = []
  const logger = { warn: (_message: string, details: unknown) => void warned.push(details), error: () => {} }
  const tools = new Tools({ usesParamHeaders: true }, logger)
  const usable = tools.learn([tool('small', 10), tool('large', 150_000), tool('late', 10)])
  expect(usable.map(({ name }) => name)).toEqual(['small'])
  expect(warned).toHaveLength(2)
  expect(() => tools.headersFor('large')).toThrow(
    'must not be called, because its definition is not valid: The input schemas of the list have more than 200000 properties and items.',
  )
})
