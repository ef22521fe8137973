// From the JSON Schema of a question to the flat form that the wire allows in an elicitation.
import type { FormSchema, PrimitiveSchemaDefinition } from '../protocol/messages.ts'
import { toField } from './field.ts'
import { isSchema, type Place, refuse, type SchemaObject, resolved } from './references.ts'

export { checkForm, pickForm } from './form-answer.ts'
export type { FormSchema } from '../protocol/messages.ts'

const MOST_PROPERTIES = 100

/**
 * The form that asks for what a JSON Schema describes, or an error that names the property a form can not have. What only
 * narrows a property further (a pattern, a multiple) is left out: it holds when the answer comes back. A form that came
 * over the wire goes through here too, before an answer is checked against it.
 */
export function toForm(jsonSchema: Readonly<Record<string, unknown>>, where: string): FormSchema {
  const place: Place = { where, root: jsonSchema }
  const schema = resolved(jsonSchema, place)
  const properties = propertiesOf(schema, place)
  const names = Object.keys(properties)
  if (names.length > MOST_PROPERTIES) {
    refuse(place, `has ${names.length} properties, and may have ${MOST_PROPERTIES}: ask in several questions.`)
  }
  const fields: Record<string, PrimitiveSchemaDefinition> = {}
  for (const name of names) {
    const property: Place = { ...place, property: name }
    if (name === '__proto__') refuse(property, 'has a name that JavaScript objects can not carry safely: rename it.')
    fields[name] = toField(properties[name], property)
  }
  const required = requiredOf(schema, fields, place)
  return required.length > 0 ? { type: 'object', properties: fields, required } : { type: 'object', properties: fields }
}

function propertiesOf(schema: SchemaObject, place: Place): SchemaObject {
  const { type, properties, anyOf, oneOf } = schema
  if (anyOf !== undefined || oneOf !== undefined) {
    refuse(place, 'is a union: ask a question for each case, or one with the properties of all, made optional.')
  }
  const isObject = type === 'object' || (type === undefined && isSchema(properties))
  if (!isObject) refuse(place, 'has to be an object with a property for each answer: wrap the schema in one.')
  const known = isSchema(properties) ? properties : {}
  if (Object.keys(known).length === 0 && isRecord(schema)) {
    refuse(place, 'is a record of any keys: name the properties that you ask for.')
  }
  return known
}

function isRecord({ additionalProperties, patternProperties }: SchemaObject): boolean {
  return (
    (isSchema(additionalProperties) && Object.keys(additionalProperties).length > 0) || patternProperties !== undefined
  )
}

function requiredOf({ required }: SchemaObject, fields: FormSchema['properties'], place: Place): string[] {
  if (!Array.isArray(required)) return []
  const names = new Set<string>()
  for (const name of required) {
    if (typeof name !== 'string') continue
    if (!Object.hasOwn(fields, name)) refuse({ ...place, property: name }, 'is required, and not described.')
    names.add(name)
  }
  return [...names]
}
