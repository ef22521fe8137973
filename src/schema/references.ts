// Reads a schema through what merely points elsewhere: local references, and combinations of one.
import { RallyError } from '../protocol/errors.ts'

export type SchemaObject = Readonly<Record<string, unknown>>

export interface Place {
  /** Whose schema it is, as messages begin. */
  where: string
  /** The whole schema, which references start from. */
  root: SchemaObject
  property?: string
}

export function refuse(place: Place, why: string): never {
  const what = place.property === undefined ? 'the form' : `property ${JSON.stringify(place.property)}`
  throw new RallyError('FORM_INVALID', `${place.where}: ${what} ${why}`)
}

export function refuseNull(place: Place): never {
  const advice = 'make it optional instead (in zod .optional(), not .nullable()).'
  return refuse(place, `may be null, which a form can not answer: ${advice}`)
}

export function isSchema(value: unknown): value is SchemaObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const MOST_HOPS = 32

/** The schema with `$ref`, and `allOf`, `anyOf` and `oneOf` of one member, replaced by what they stand for. */
export function resolved(schema: unknown, place: Place): SchemaObject {
  let current = schema
  for (let hop = 0; hop < MOST_HOPS; hop++) {
    if (!isSchema(current)) refuse(place, 'has no schema: say what it is, such as { "type": "string" }.')
    const next = followed(current, place)
    if (next === undefined) return current
    current = next
  }
  return refuse(place, 'refers back to itself: a form is flat.')
}

function followed(schema: SchemaObject, place: Place): SchemaObject | undefined {
  if (typeof schema['$ref'] === 'string') {
    const { $ref: _, ...own } = schema
    return { ...target(schema['$ref'], place), ...own }
  }
  const { allOf, ...own } = schema
  if (Array.isArray(allOf)) {
    const shaping: unknown[] = allOf.length > 1 ? allOf.filter((member) => shapes(member, own)) : allOf
    if (shaping.length > 1) refuse(place, 'combines several schemas (allOf): write them as one.')
    return { ...asSchema(shaping[0]), ...own }
  }
  for (const keyword of ['anyOf', 'oneOf']) {
    const { [keyword]: union, ...rest } = schema
    const only = oneMember(union)
    if (only) return { ...only, ...rest }
  }
  return undefined
}

/** A lone constant stays where it is, so that its title is that of an option and not of the property. */
function oneMember(union: unknown): SchemaObject | undefined {
  if (!Array.isArray(union) || union.length !== 1) return undefined
  const member = asSchema(union[0])
  return 'const' in member ? undefined : member
}

function asSchema(value: unknown): SchemaObject {
  return isSchema(value) ? value : {}
}

const SHAPING = ['$ref', 'allOf', 'anyOf', 'oneOf', 'const', 'enum', 'properties', 'items']

/** Whether a member of `allOf` says what the value is; zod and arktype put mere patterns there. */
function shapes(member: unknown, own: SchemaObject): boolean {
  if (!isSchema(member)) return false
  return SHAPING.some((keyword) => keyword in member) || ('type' in member && member['type'] !== own['type'])
}

function target(reference: string, place: Place): SchemaObject {
  let found: unknown = /^#(?:\/|$)/.test(reference) ? place.root : undefined
  for (const part of reference.split('/').slice(1)) {
    const key = unescaped(part)
    found =
      typeof found === 'object' && found !== null && Object.hasOwn(found, key) ? Reflect.get(found, key) : undefined
  }
  if (isSchema(found)) return found
  return refuse(place, `refers to ${JSON.stringify(reference)}, which is not in this schema: put it under "$defs".`)
}

function unescaped(part: string): string {
  return percentDecoded(part).replaceAll('~1', '/').replaceAll('~0', '~')
}

function percentDecoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    // Libraries write names into references as they are, so that a percent sign may be just that.
    return part
  }
}
