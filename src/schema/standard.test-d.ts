import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import { expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import * as mini from 'zod/mini'
import { type Checked, checkStandard, type Input, type Output, type Schema } from './standard.ts'

const ofZod = z.object({ env: z.string(), dry: z.boolean().default(true) })
const ofArktype = type({ env: 'string', dry: 'boolean = true' })
const ofValibot = toStandardJsonSchema(v.object({ env: v.string(), dry: v.optional(v.boolean(), true) }))
const ofMini = mini.toJSONSchema(mini.object({ env: mini.string(), dry: mini._default(mini.boolean(), true) }))
const plain = { type: 'object', properties: { env: { type: 'string' } } }

test('schemas of every library are schemas', () => {
  expectTypeOf(ofZod).toExtend<Schema>()
  expectTypeOf(ofArktype).toExtend<Schema>()
  expectTypeOf(ofValibot).toExtend<Schema>()
  expectTypeOf(ofMini).toExtend<Schema>()
  expectTypeOf(plain).toExtend<Schema>()
  expectTypeOf<string>().not.toExtend<Schema>()
})

test('the output is what the schema gives', () => {
  expectTypeOf<Output<typeof ofZod>>().toEqualTypeOf<{ env: string; dry: boolean }>()
  expectTypeOf<Output<typeof ofArktype>>().toEqualTypeOf<{ env: string; dry: boolean }>()
  expectTypeOf<Output<typeof ofValibot>>().toEqualTypeOf<{ env: string; dry: boolean }>()
  expectTypeOf<Output<typeof ofMini>>().toEqualTypeOf<{ env: string; dry: boolean }>()
  expectTypeOf<Output<typeof plain>>().toEqualTypeOf<Record<string, unknown>>()
})

test('the input is what it takes', () => {
  expectTypeOf<Input<typeof ofZod>>().toEqualTypeOf<{ env: string; dry?: boolean | undefined }>()
  expectTypeOf<Input<typeof plain>>().toEqualTypeOf<Record<string, unknown>>()
})

test('a check knows the type of the value', () => {
  type Deploy = Checked<{ env: string; dry: boolean }>
  expectTypeOf(checkStandard(ofZod, {})).toEqualTypeOf<Deploy | Promise<Deploy>>()
  expectTypeOf(checkStandard(ofArktype, {})).toEqualTypeOf<Deploy | Promise<Deploy>>()
})
