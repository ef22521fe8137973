// Tool arguments that an HTTP request repeats in its headers (`x-mcp-header`), so that a proxy can route by them.
import { RallyError } from '../protocol/errors.ts'
import { encodeHeader } from '../protocol/headers.ts'
import { isObject, isTame } from '../protocol/json.ts'

export interface ParamHeader {
  /** The whole name, such as `mcp-param-region`, in lower case. */
  readonly header: string
  /** Where the value is in the arguments. */
  readonly path: readonly string[]
}

const KEYWORD = 'x-mcp-header'
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean'])

/** A schema may come from a server that is not trusted. */
const DEEPEST = 256

/**
 * Finds the annotated properties of an input schema. One in a wrong place makes the tool one that clients leave out, so it
 * throws, with code `SCHEMA`.
 */
export function paramHeaders(schema: Readonly<Record<string, unknown>>, tool: string): ParamHeader[] {
  if (!isTame(schema, DEEPEST)) {
    throw new RallyError('SCHEMA_INVALID', `The input of tool "${tool}": the schema is nested past ${DEEPEST} levels.`)
  }
  const found: ParamHeader[] = []
  collect(schema, [], tool, found)
  if (countKeywords(schema) > found.length) {
    throw wrong(tool, 'is in a place that a path of plain properties does not reach')
  }
  if (new Set(found.map(({ header }) => header)).size < found.length) throw wrong(tool, 'repeats a name')
  return found
}

/** The headers of a call, names and values in turn. An argument that is absent or null has none. */
export function headersOf(params: readonly ParamHeader[], args: Readonly<Record<string, unknown>>): string[] {
  return params.flatMap(({ header, path }) => {
    const text = textOf(valueAt(args, path))
    return text === undefined ? [] : [header, encodeHeader(text)]
  })
}

/** What the arguments, untrusted, have at a path of their own properties. */
export function valueAt(args: unknown, path: readonly string[]): unknown {
  let value = args
  for (const key of path) value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
  return value
}

/** Anything but a primitive does not fit its schema, which is for the server to say. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return String(value)
  if (typeof value !== 'number') return undefined
  // Written out: the server reads digits alone.
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
    if (KEYWORD in property) found.push({ header: headerName(property, inner, tool), path: inner })
    collect(property, inner, tool, found)
  }
}

function headerName(property: Readonly<Record<string, unknown>>, path: readonly string[], tool: string): string {
  const name = property[KEYWORD]
  if (typeof name !== 'string' || !FIELD_NAME.test(name)) {
    throw wrong(tool, `at ${path.join('.')} must be a name of letters, digits and hyphens`)
  }
  if (!TYPES.has(property['type'])) throw wrong(tool, `at ${path.join('.')} needs the type string, integer or boolean`)
  return `mcp-param-${name.toLowerCase()}`
}

/** How often the keyword stands anywhere in the schema, other than as the name of a property. */
function countKeywords(schema: unknown, areNames = false): number {
  if (Array.isArray(schema)) return schema.reduce<number>((sum, item) => sum + countKeywords(item), 0)
  if (!isObject(schema)) return 0
  let count = 0
  for (const [key, value] of Object.entries(schema)) {
    if (key === KEYWORD && !areNames) count += 1
    else if (!DATA.has(key) || areNames) count += countKeywords(value, !areNames && NAMING.has(key))
  }
  return count
}

/** Keywords whose keys are names of the author's. */
const NAMING: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  'dependentRequired',
  'dependencies',
  '$defs',
  'definitions',
])

/** Keywords that hold values, not schemas. */
const DATA: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples'])

function wrong(tool: string, what: string): RallyError {
  return new RallyError('SCHEMA_INVALID', `The input of tool "${tool}": ${KEYWORD} ${what}.`)
}
