// Checks a message against a definition of the official schema of a revision, or of the tasks extension.
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import older from './2025-11-25/schema.json' with { type: 'json' }
import schema from './2026-07-28/schema.json' with { type: 'json' }
import tasks from './ext-tasks/schema.json' with { type: 'json' }

export const EXAMPLES = new URL('./2026-07-28/examples/', import.meta.url)

type Revision = '2025-11-25' | '2026-07-28' | 'ext-tasks'

/** A check against one definition of the official schema: what is wrong with a message, empty when nothing is. */
export function specValidator(definition: string, revision: Revision = '2026-07-28'): (value: unknown) => string[] {
  const validate = compiled(definition, revision)
  return (value) => {
    if (validate(value)) return []
    return (validate.errors ?? []).map((error) => `${error.instancePath || definition} ${error.message}`)
  }
}

const ajv = new Ajv2020({ strict: false, allErrors: true })
formats.default(ajv)
ajv.addSchema(schema, '2026-07-28')
ajv.addSchema(older, '2025-11-25')
ajv.addSchema(tasks, 'ext-tasks')

function compiled(definition: string, revision: Revision): ValidateFunction {
  const validate = ajv.getSchema(`${revision}#/$defs/${definition}`)
  if (!validate) throw new Error(`The schema defines no "${definition}"; see $defs in test/spec/${revision}.`)
  return validate
}
