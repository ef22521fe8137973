// The arguments of a tool that an HTTP request repeats in its headers (`x-mcp-header`), so that a proxy can route by them.
import { RallyError } from '../protocol/errors.ts'
import { encodeHeader } from '../protocol/headers.ts'
import { isObject, isTame, pathText } from '../protocol/json.ts'
import { shown } from '../protocol/text.ts'
import { NAMING_KEYWORDS, VALUE_KEYWORDS } from './json-schema.ts'

export interface ParamHeader {
  /** The full name in lower case, such as `mcp-param-region`. */
  readonly header: string
  /** The path of the value in the arguments. */
  readonly path: readonly string[]
}

const KEYWORD = 'x-mcp-header'
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean'])
const UNIONS = ['anyOf', 'oneOf'] as const

/** A schema may come from an untrusted server. */
const DEEPEST = 256
const MOST_HEADERS = 100
const LONGEST_NAME = 128

/**
 * Finds the properties of an input schema that have the keyword. Clients leave out a tool that has it in a wrong place, so
 * that throws SCHEMA_INVALID.
 */
export function paramHeaders(schema: Readonly<Record<string, unknown>>, tool: string): ParamHeader[] {
  if (!isTame(schema, DEEPEST)) {
    throw new RallyError(
      'SCHEMA_INVALID',
      `The input of tool "${tool}": the schema is nested past ${DEEPEST} levels. Make it flatter.`,
    )
  }
  const found: ParamHeader[] = []
  collect(schema, [], tool, found)
  if (countKeywords(schema) > found.length) {
    throw invalid(tool, 'is in a place that no path of properties reaches. Put it on a property of an object')
  }
  if (new Set(found.map(({ header }) => header)).size < found.length)
    throw invalid(tool, 'repeats a name. Give each property its own')
  return found
}

/** The headers of a call, as alternating names and values. An argument that is missing or null has no header. */
export function headersOf(params: readonly ParamHeader[], args: Readonly<Record<string, unknown>>): string[] {
  return params.flatMap(({ header, path }) => {
    const text = textOf(valueAt(args, path))
    return text === undefined ? [] : [header, encodeHeader(text)]
  })
}

/** The value at a path of the untrusted arguments. Inherited properties are ignored. */
export function valueAt(args: unknown, path: readonly string[]): unknown {
  let value = args
  for (const key of path) value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
  return value
}

/** Only primitives have a header. Any other value violates the schema, and the server will say so. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return String(value)
  if (typeof value !== 'number') return undefined
  // Without an exponent: the server accepts digits only.
  return Number.isInteger(value) ? BigInt(value).toString() : String(value)
}

function collect(
  schema: Readonly<Record<string, unknown>>,
  path: readonly string[],
  tool: string,
  found: ParamHeader[],
): void {
  const { properties } = schema
  if (!isObject(properties)) return
  for (const [key, property] of Object.entries(properties)) {
    if (!isObject(property)) continue
    const inner = [...path, key]
    if (KEYWORD in property) {
      if (found.length === MOST_HEADERS) throw invalid(tool, `is on more than ${MOST_HEADERS} properties. Remove some`)
      found.push({ header: headerName(property, inner, tool), path: inner })
    }
    collect(property, inner, tool, found)
  }
}

function headerName(property: Readonly<Record<string, unknown>>, path: readonly string[], tool: string): string {
  const name = property[KEYWORD]
  if (typeof name !== 'string' || name.length > LONGEST_NAME || !FIELD_NAME.test(name)) {
    const expected = `a name of at most ${LONGEST_NAME} letters, digits and hyphens`
    throw invalid(tool, `at ${pathText(path)} must be ${expected}, got ${shown(name)}`)
  }
  if (!TYPES.has(typeOf(property))) {
    const expected = 'the type string, integer or boolean, which may be nullable'
    throw invalid(tool, `at ${pathText(path)} needs ${expected}, got ${shown(property['type'])}`)
  }
  return `mcp-param-${name.toLowerCase()}`
}

/** The type of a property, or the one that a nullable property has beside null. */
function typeOf(property: Readonly<Record<string, unknown>>): unknown {
  const { type } = property
  if (Array.isArray(type)) return besideNull(type)
  if (type !== undefined) return type
  const union = UNIONS.map((keyword) => property[keyword]).find(Array.isArray)
  return besideNull(union?.map((member: unknown) => (isObject(member) ? member['type'] : undefined)))
}

function besideNull(types: readonly unknown[] | undefined): unknown {
  if (types?.length !== 2 || !types.includes('null')) return undefined
  return types.find((type) => type !== 'null')
}

/** Counts the keyword anywhere in the schema, except where it is the name of a property. */
function countKeywords(schema: unknown, areNames = false): number {
  if (Array.isArray(schema)) return schema.reduce<number>((sum, item) => sum + countKeywords(item), 0)
  if (!isObject(schema)) return 0
  let count = 0
  for (const [key, value] of Object.entries(schema)) {
    if (key === KEYWORD && !areNames) count += 1
    else if (!VALUE_KEYWORDS.has(key) || areNames) {
      count += countKeywords(value, !areNames && NAMING_KEYWORDS.has(key))
    }
  }
  return count
}

function invalid(tool: string, what: string): RallyError {
  return new RallyError('SCHEMA_INVALID', `The input of tool "${tool}": ${KEYWORD} ${what}.`)
}
