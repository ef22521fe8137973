// Checks a message against a definition of the official 2026-07-28 schema.
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import schema from './2026-07-28/schema.json' with { type: 'json' }

export const EXAMPLES = new URL('./2026-07-28/examples/', import.meta.url)

/** A check against one definition of the official schema: what is wrong with a message, empty when nothing is. */
export function specValidator(definition: string): (value: unknown) => string[] {
  const validate = compiled(definition)
  return (value) => {
    if (validate(value)) return []
    return (validate.errors ?? []).map((error) => `${error.instancePath || definition} ${error.message}`)
  }
}

const ajv = new Ajv2020({ strict: false, allErrors: true })
formats.default(ajv)
ajv.addSchema(schema, 'spec')

function compiled(definition: string): ValidateFunction {
  const validate = ajv.getSchema(`spec#/$defs/${definition}`)
  if (!validate) throw new Error(`The 2026-07-28 schema defines no "${definition}"; see $defs in test/spec/2026-07-28.`)
  return validate
}
