// Arbitrary forms, as the wire allows them, for property tests.
import * as fc from 'fast-check'
import type { FormSchema, PrimitiveSchemaDefinition } from '../../src/protocol/messages.ts'

const label = fc.string({ maxLength: 8 })
const labels = { title: label, description: label }
const count = fc.nat(4)
const bounds = { minimum: fc.integer({ max: 1 }), maximum: fc.integer({ min: -1 }), default: fc.nat() }
const values = fc.uniqueArray(fc.string({ maxLength: 3 }), { minLength: 1, maxLength: 4 })
const options = values.map((consts) => consts.map((value) => ({ const: value, title: `the ${value}` })))
const untitledItems = values.map((list) => ({ type: 'string' as const, enum: list }))
const titledItems = options.map((list) => ({ anyOf: list }))

const type = fc.constant
const anyField: fc.Arbitrary<PrimitiveSchemaDefinition> = fc.oneof(
  fc.record(
    { ...labels, type: type('string'), minLength: count, maxLength: count, default: label },
    { requiredKeys: ['type'] },
  ),
  fc.record({ ...labels, ...bounds, type: type('number') }, { requiredKeys: ['type'] }),
  fc.record({ ...labels, ...bounds, type: type('integer') }, { requiredKeys: ['type'] }),
  fc.record({ ...labels, type: type('boolean'), default: fc.boolean() }, { requiredKeys: ['type'] }),
  fc.record({ ...labels, type: type('string'), enum: values }, { requiredKeys: ['type', 'enum'] }),
  fc.record({ ...labels, type: type('string'), oneOf: options }, { requiredKeys: ['type', 'oneOf'] }),
  fc.record(
    { ...labels, type: type('array'), items: untitledItems, maxItems: count },
    { requiredKeys: ['type', 'items'] },
  ),
  fc.record(
    { ...labels, type: type('array'), items: titledItems, minItems: count },
    { requiredKeys: ['type', 'items'] },
  ),
)

const names = fc.constantFrom('env', 'a b', 'constructor', 'toString', 'hasOwnProperty', '', '0', 'length')

export const anyForm: fc.Arbitrary<FormSchema> = fc
  .tuple(fc.dictionary(names, anyField, { noNullPrototype: true }), fc.array(names))
  .map(([properties, wanted]) => {
    const required = [...new Set(wanted)].filter((name) => Object.hasOwn(properties, name))
    return required.length > 0 ? { type: 'object', properties, required } : { type: 'object', properties }
  })

/** Answers to that form: some that fit, many that nearly do. */
export const answerTo = (form: FormSchema): fc.Arbitrary<Record<string, unknown>> => {
  const choices = Object.values(form.properties).flatMap(optionsOf)
  const value = fc.oneof(
    fc.constantFrom(...choices, '', 'a', 'ab😀', '😀😀😀😀', 0, 1, -1, 1.5, true, false, null),
    fc.array(fc.constantFrom(...choices, 'a', 1), { maxLength: 4 }),
    fc.integer(),
    fc.string(),
  )
  return fc.dictionary(names, value, { noNullPrototype: true })
}

function optionsOf(definition: PrimitiveSchemaDefinition): string[] {
  if (definition.type === 'array') {
    return 'anyOf' in definition.items ? definition.items.anyOf.map((option) => option.const) : definition.items.enum
  }
  if ('oneOf' in definition) return definition.oneOf.map((option) => option.const)
  return 'enum' in definition ? definition.enum : []
}
