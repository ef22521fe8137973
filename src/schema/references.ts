// Resolves the parts of a schema that only point elsewhere: local references, and combinations with one member.
import { RallyError } from '../protocol/errors.ts'
import { isObject } from '../protocol/json.ts'
import { quoted } from '../protocol/text.ts'
import { keyOf, pointsIntoValue } from './json-schema.ts'

export type SchemaObject = Readonly<Record<string, unknown>>

/** The part of a schema that is being read. */
export interface SchemaPosition {
  /** Whose schema it is. Messages begin with it. */
  where: string
  /** The whole schema, in which references are looked up. */
  root: SchemaObject
  /** The property that is being read; none for the form itself. */
  property?: string
  /** A few references can stand for a very large form, so the steps to resolve them are counted. */
  readonly steps: { readonly most: number; left: number }
}

/** Counts work before it is done. */
export function spend(position: SchemaPosition, steps: number): void {
  position.steps.left -= steps
  if (position.steps.left < 0) {
    refuse(position, `takes more than ${position.steps.most} steps to resolve. Use fewer references, or smaller ones.`)
  }
}

export function refuse(position: SchemaPosition, why: string): never {
  const what = position.property === undefined ? 'the form' : `property ${quoted(position.property)}`
  throw new RallyError('FORM_INVALID', `${position.where}: ${what} ${why}`)
}

export function refuseNull(position: SchemaPosition): never {
  return refuse(
    position,
    'may be null, which no form can answer. Make it optional (zod: .optional(), not .nullable()).',
  )
}

const MOST_HOPS = 32

/** Replaces `$ref`, and `allOf`, `anyOf` and `oneOf` with one member, by the schema that they stand for. */
export function resolved(schema: unknown, position: SchemaPosition): SchemaObject {
  let current = schema
  for (let hop = 0; hop < MOST_HOPS; hop++) {
    if (!isObject(current)) refuse(position, 'has no schema. Give it one, such as { "type": "string" }.')
    spend(position, 1 + Object.keys(current).length)
    const next = followed(current, position)
    if (next === undefined) return current
    current = next
  }
  return refuse(position, 'refers back to itself, but a form is flat. Remove the reference.')
}

function followed(schema: SchemaObject, position: SchemaPosition): SchemaObject | undefined {
  if (typeof schema['$ref'] === 'string') {
    const { $ref: _, ...own } = schema
    return { ...target(schema['$ref'], position), ...own }
  }
  const { allOf, ...own } = schema
  if (Array.isArray(allOf)) {
    spend(position, allOf.length)
    const shaping: unknown[] = allOf.length > 1 ? allOf.filter((member) => isShaping(member, own)) : allOf
    if (shaping.length > 1) refuse(position, 'combines several schemas (allOf). Write them as one.')
    return { ...asSchema(shaping[0]), ...own }
  }
  for (const keyword of ['anyOf', 'oneOf']) {
    const { [keyword]: union, ...rest } = schema
    const only = oneMember(union)
    if (only) return { ...only, ...rest }
  }
  return undefined
}

/** A single constant stays a member: its title belongs to the option, not to the property. */
function oneMember(union: unknown): SchemaObject | undefined {
  if (!Array.isArray(union) || union.length !== 1) return undefined
  const member = asSchema(union[0])
  return 'const' in member ? undefined : member
}

function asSchema(value: unknown): SchemaObject {
  return isObject(value) ? value : {}
}

const SHAPING = ['$ref', 'allOf', 'anyOf', 'oneOf', 'const', 'enum', 'properties', 'items']

/** True if a member of `allOf` defines what the value is. zod and arktype also put patterns there, which do not. */
function isShaping(member: unknown, own: SchemaObject): boolean {
  if (!isObject(member)) return false
  return SHAPING.some((keyword) => keyword in member) || ('type' in member && member['type'] !== own['type'])
}

function target(reference: string, position: SchemaPosition): SchemaObject {
  // A reference may be as long as the whole form.
  spend(position, reference.length)
  const keys = reference.split('/').slice(1).map(keyOf)
  if (pointsIntoValue(keys)) {
    refuse(position, `refers to ${quoted(reference)}, which is a value and not a schema. Put the schema under "$defs".`)
  }
  let found: unknown = /^#(?:\/|$)/.test(reference) ? position.root : undefined
  for (const key of keys) {
    found =
      typeof found === 'object' && found !== null && Object.hasOwn(found, key) ? Reflect.get(found, key) : undefined
  }
  if (!isObject(found)) {
    refuse(position, `refers to ${quoted(reference)}, which is not in this schema. Put it under "$defs".`)
  }
  spend(position, Object.keys(found).length)
  return found
}
