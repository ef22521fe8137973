// Converts the JSON Schema of one property to a field of a form: text, a number, a boolean or a choice.
import type {
  BooleanSchema,
  NumberSchema,
  PrimitiveSchemaDefinition,
  StringFormat,
  StringSchema,
} from '../protocol/messages.ts'
import { isObject } from '../protocol/json.ts'
import { type Option, optionsOf, titled, unionOf } from './choices.ts'
import { type SchemaPosition, refuse, refuseNull, type SchemaObject, resolved } from './references.ts'

export function toField(raw: unknown, position: SchemaPosition): PrimitiveSchemaDefinition {
  const schema = resolved(raw, position)
  const options = optionsOf(schema, position)
  if (options) return toSingleSelect(schema, options)
  const type = typeOf(schema, position)
  switch (type) {
    case 'string':
      return toText(schema)
    case 'number':
    case 'integer':
      return toNumber(schema, type)
    case 'boolean':
      return toBoolean(schema)
    case 'array':
      return toMultiSelect(schema, position)
    case 'object':
      return refuse(position, 'is an object, but a form is flat. Make each of its properties a property of the form.')
    default:
      return refuse(position, 'has no type that a form supports. Make it a string, number, integer, boolean or enum.')
  }
}

/** The single type of a property. A union of strings, or of numbers, has one; its members are checked with the answer. */
function typeOf(schema: SchemaObject, position: SchemaPosition): unknown {
  const members = unionOf(schema, position) ?? [schema]
  const types = new Set(members.flatMap((member) => ownType(member) ?? schema['type']))
  if (types.has('null')) refuseNull(position)
  if (types.size === 2 && types.has('number') && types.has('integer')) return 'number'
  if (types.size > 1) {
    const named = [...types].map((type) => (typeof type === 'string' ? type : 'anything'))
    refuse(position, `is ${named.join(' or ')}, but a property of a form has one type. Choose one.`)
  }
  const [only] = types
  return only
}

function ownType({ type, properties, const: only, enum: values }: SchemaObject): unknown {
  if (type !== undefined) return type
  if (isObject(properties)) return 'object'
  return only !== undefined || values !== undefined ? 'string' : undefined
}

function toText(schema: SchemaObject): StringSchema {
  return {
    type: 'string',
    ...labels(schema),
    ...kept('minLength', schema['minLength'], isCount),
    ...kept('maxLength', schema['maxLength'], isCount),
    ...kept('format', schema['format'], isFormat),
    ...kept('default', schema['default'], isString),
  }
}

function toNumber(schema: SchemaObject, type: 'number' | 'integer'): NumberSchema {
  const lower = [schema['minimum']]
  const upper = [schema['maximum']]
  if (type === 'integer') {
    // A form has no exclusive limits. For whole numbers the next number is the same limit.
    if (isNumber(schema['exclusiveMinimum'])) lower.push(Math.floor(schema['exclusiveMinimum']) + 1)
    if (isNumber(schema['exclusiveMaximum'])) upper.push(Math.ceil(schema['exclusiveMaximum']) - 1)
  }
  return {
    type,
    ...labels(schema),
    ...kept('minimum', Math.max(...lower.filter(isBound)), isNumber),
    ...kept('maximum', Math.min(...upper.filter(isBound)), isNumber),
    ...kept('default', schema['default'], type === 'integer' ? isInteger : isNumber),
  }
}

function toBoolean(schema: SchemaObject): BooleanSchema {
  return { type: 'boolean', ...labels(schema), ...kept('default', schema['default'], isBoolean) }
}

function toSingleSelect(schema: SchemaObject, options: readonly Option[]): PrimitiveSchemaDefinition {
  const values = options.map((option) => option.const)
  const isOption = (value: unknown): value is string => isString(value) && values.includes(value)
  const rest = { ...labels(schema), ...kept('default', schema['default'], isOption) }
  // Keep the older spelling (enumNames) if the author used it and no option was dropped.
  const { enumNames } = schema
  const isNamed = (value: unknown): value is string[] =>
    Array.isArray(value) && value.length === values.length && value.every(isString)
  if (Array.isArray(schema['enum']) && schema['enum'].length === values.length && isNamed(enumNames)) {
    return { type: 'string', ...rest, enum: values, enumNames }
  }
  const oneOf = titled(options)
  return oneOf ? { type: 'string', ...rest, oneOf } : { type: 'string', ...rest, enum: values }
}

function toMultiSelect(schema: SchemaObject, position: SchemaPosition): PrimitiveSchemaDefinition {
  const { items, prefixItems } = schema
  if (Array.isArray(items) || prefixItems !== undefined) {
    refuse(position, 'is a tuple. Make each of its items a property of its own.')
  }
  const options = isObject(items) ? optionsOf(resolved(items, position), position) : undefined
  if (!options) {
    return refuse(
      position,
      'is a list of free values, but a form only has lists to choose from. Make its items an enum.',
    )
  }
  const values = options.map((option) => option.const)
  const known = new Set<unknown>(values)
  const areOptions = (value: unknown): value is string[] =>
    Array.isArray(value) && value.every((item) => known.has(item))
  const rest = {
    ...labels(schema),
    ...kept('minItems', schema['minItems'], isCount),
    ...kept('maxItems', schema['maxItems'], isCount),
    ...kept('default', schema['default'], areOptions),
  }
  const anyOf = titled(options)
  return anyOf
    ? { type: 'array', ...rest, items: { anyOf } }
    : { type: 'array', ...rest, items: { type: 'string', enum: values } }
}

function labels(schema: SchemaObject): { title?: string; description?: string } {
  return { ...kept('title', schema['title'], isString), ...kept('description', schema['description'], isString) }
}

/** The keyword with its value, or nothing if the value does not fit the protocol. */
function kept<Key extends string, Value>(
  key: Key,
  value: unknown,
  fits: (value: unknown) => value is Value,
): Partial<Record<Key, Value>> {
  const record: Partial<Record<string, Value>> = {}
  if (fits(value)) record[key] = value
  return record
}

const isString = (value: unknown): value is string => typeof value === 'string'
const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean'
const isNumber = (value: unknown): value is number => Number.isFinite(value)
const isInteger = (value: unknown): value is number => Number.isInteger(value)
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0
const isFormat = (value: unknown): value is StringFormat =>
  value === 'email' || value === 'uri' || value === 'date' || value === 'date-time'

/** zod limits every integer to the safe integers, which is of no use to a user. */
const isBound = (value: unknown): value is number => isNumber(value) && Math.abs(value) < Number.MAX_SAFE_INTEGER
