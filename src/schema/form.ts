// Converts the JSON Schema of a question to the flat form that the protocol allows in an elicitation.
import type { FormSchema, PrimitiveSchemaDefinition } from '../protocol/messages.ts'
import { isObject } from '../protocol/json.ts'
import { toField } from './field.ts'
import { type SchemaPosition, refuse, type SchemaObject, resolved } from './references.ts'

const MOST_PROPERTIES = 100
const MOST_STEPS = 200_000

/**
 * The form for a JSON Schema. Throws FORM_INVALID, naming the property that no form can have.
 * Keywords that only narrow a value (a pattern, a multiple) are left out: the full schema checks the answer later.
 * A client also calls it with a form that a server sent, before it checks an answer against that form. A form that takes
 * more than `mostSteps` steps to resolve is refused.
 */
export function toForm(
  jsonSchema: Readonly<Record<string, unknown>>,
  where: string,
  mostSteps = MOST_STEPS,
): FormSchema {
  const position: SchemaPosition = { where, root: jsonSchema, steps: { most: mostSteps, left: mostSteps } }
  const schema = resolved(jsonSchema, position)
  const properties = propertiesOf(schema, position)
  const names = Object.keys(properties)
  if (names.length > MOST_PROPERTIES) {
    refuse(
      position,
      `has ${names.length} properties, but at most ${MOST_PROPERTIES} are allowed. Ask in several questions.`,
    )
  }
  const fields: Record<string, PrimitiveSchemaDefinition> = {}
  for (const name of names) {
    const property: SchemaPosition = { ...position, property: name }
    if (name === '__proto__') refuse(property, 'has a name that is not safe in JavaScript objects. Rename it.')
    fields[name] = toField(properties[name], property)
  }
  const required = requiredOf(schema, fields, position)
  return required.length > 0 ? { type: 'object', properties: fields, required } : { type: 'object', properties: fields }
}

function propertiesOf(schema: SchemaObject, position: SchemaPosition): SchemaObject {
  const { type, properties, anyOf, oneOf } = schema
  if (anyOf !== undefined || oneOf !== undefined) {
    refuse(
      position,
      'is a union. Ask one question per case, or one question with the properties of all cases as optional.',
    )
  }
  const isObjectSchema = type === 'object' || (type === undefined && isObject(properties))
  if (!isObjectSchema) refuse(position, 'must be an object with a property for each answer. Wrap the schema in one.')
  const known = isObject(properties) ? properties : {}
  if (Object.keys(known).length === 0 && isRecord(schema)) {
    refuse(position, 'is a record of any keys. Name the properties that you ask for.')
  }
  return known
}

function isRecord({ additionalProperties, patternProperties }: SchemaObject): boolean {
  return (
    (isObject(additionalProperties) && Object.keys(additionalProperties).length > 0) || patternProperties !== undefined
  )
}

function requiredOf({ required }: SchemaObject, fields: FormSchema['properties'], position: SchemaPosition): string[] {
  if (!Array.isArray(required)) return []
  const names = new Set<string>()
  for (const name of required) {
    if (typeof name !== 'string') continue
    if (!Object.hasOwn(fields, name))
      refuse({ ...position, property: name }, 'is required, but not described. Add it to the properties.')
    names.add(name)
  }
  return [...names]
}
