// Tool arguments that an HTTP request repeats in its headers (`x-mcp-header`), so that a proxy can route by them.
import { RallyError } from '../protocol/errors.ts'
import { isObject } from './request.ts'

export interface ParamHeader {
  /** The whole name, such as `mcp-param-region`, in lower case. */
  readonly header: string
  /** Where the value is in the arguments. */
  readonly path: readonly string[]
}

const KEYWORD = 'x-mcp-header'
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean'])

/** Finds the annotated properties of an input schema. One in a wrong place would make clients drop the tool, so it throws. */
export function paramHeaders(schema: Record<string, unknown>, tool: string): ParamHeader[] {
  const found: ParamHeader[] = []
  collect(schema, [], tool, found)
  if (countKeywords(schema) > found.length) {
    throw wrong(tool, 'is in a place that a path of plain properties does not reach')
  }
  if (new Set(found.map(({ header }) => header)).size < found.length) throw wrong(tool, 'repeats a name')
  return found
}

function collect(schema: Record<string, unknown>, path: readonly string[], tool: string, found: ParamHeader[]): void {
  const { properties } = schema
  if (!isObject(properties)) return
  for (const [key, property] of Object.entries(properties)) {
    if (!isObject(property)) continue
    const inner = [...path, key]
    if (KEYWORD in property) found.push({ header: headerName(property, inner, tool), path: inner })
    collect(property, inner, tool, found)
  }
}

function headerName(property: Record<string, unknown>, path: readonly string[], tool: string): string {
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
  return new RallyError('SCHEMA', `The input of tool "${tool}": ${KEYWORD} ${what}.`)
}
