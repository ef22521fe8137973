import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import * as mini from 'zod/mini'
import type { Schema } from './standard.ts'
import { toCheck } from './validator.ts'

const check = (schema: Schema, value: unknown): unknown => toCheck(schema, 'The schema')(value)

test('an async refinement runs once, and its rejection reaches the caller alone', async () => {
  const refine = vi.fn<() => Promise<never>>(async () => {
    throw new Error('The database is away.')
  })
  await expect(check(z.object({ id: z.string().refine(refine) }), { id: '1' })).rejects.toThrow('away')
  expect(refine).toHaveBeenCalledTimes(1)
})

test.each([
  { library: 'zod', schema: z.object({ id: z.string().refine(async (id) => id === '1', 'must be 1') }) },
  {
    library: 'zod/mini',
    schema: mini.object({ id: mini.string().check(mini.refine(async (id) => id === '1', 'must be 1')) }),
  },
])('an async refinement of $library says what is wrong', async ({ schema }) => {
  expect(await check(schema, { id: '1' })).toEqual({ value: { id: '1' } })
  expect(await check(schema, { id: '2' })).toEqual({ issues: ['id: must be 1'], paths: ['id'] })
})

test('functions that return no promise are not waited for', () => {
  const schema = z.object({
    n: z
      .string()
      .refine((n) => n !== '0', 'must not be 0')
      .transform(Number),
  })
  expect(check(schema, { n: '7' })).toEqual({ value: { n: 7 } })
  expect(check(schema, { n: '0' })).toEqual({ issues: ['n: must not be 0'], paths: ['n'] })
})

test('a function is found in every part of a schema, also of one that holds itself', async () => {
  const refined = z.string().refine(async () => {
    throw new Error('The database is away.')
  })
  const tree = z.object({
    name: refined,
    get children() {
      return z.array(tree)
    },
  })
  const parts: [Schema, unknown][] = [
    [z.array(refined), ['x']],
    [z.union([z.number(), refined]), 'x'],
    [z.record(z.string(), refined), { a: 'x' }],
    [z.optional(refined), 'x'],
    [z.lazy(() => refined), 'x'],
    [z.tuple([z.number(), refined]), [1, 'x']],
    [z.intersection(z.object({ a: refined }), z.object({ b: z.string() })), { a: 'x', b: 'y' }],
    [tree, { name: 'x', children: [{ name: 'y', children: [] }] }],
  ]
  for (const [schema, value] of parts) await expect(check(schema, value)).rejects.toThrow('away')
})
