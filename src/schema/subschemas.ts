// Every schema inside a JSON Schema, within bounds: a schema may come from a server that is not trusted.
import { RallyError } from '../protocol/errors.ts'
import { isObject } from '../protocol/json.ts'

const DEEPEST = 64
const MOST = 2000

/** Holds values, not schemas, however much they look like some. */
const DATA = new Set(['const', 'default', 'enum', 'examples', 'example'])

/** Holds schemas by names of the author's. */
const NAMED = new Set(['$defs', 'definitions', 'dependencies', 'dependentSchemas', 'patternProperties', 'properties'])

/** The schema itself and all below it. What an unknown keyword holds counts too, for a reference may point there. */
export function subschemas(schema: Record<string, unknown>, where: string): Record<string, unknown>[] {
  const found = [schema]
  const depths = [1]
  for (let index = 0; index < found.length; index++) {
    const depth = (depths[index] ?? 0) + 1
    for (const child of childrenOf(found[index] ?? {})) {
      if (depth > DEEPEST) {
        throw new RallyError(
          'SCHEMA_INVALID',
          `${where}: the schema is nested past ${DEEPEST} levels; make it flatter.`,
        )
      }
      if (found.length === MOST) {
        throw new RallyError('SCHEMA_INVALID', `${where}: the schema holds more than ${MOST} schemas; make it smaller.`)
      }
      found.push(child)
      depths.push(depth)
    }
  }
  return found
}

function childrenOf(schema: Record<string, unknown>): Record<string, unknown>[] {
  return Object.entries(schema).flatMap(([keyword, value]) => {
    if (DATA.has(keyword)) return []
    const candidates = NAMED.has(keyword) && isObject(value) ? Object.values(value) : [value].flat()
    return candidates.filter(isObject)
  })
}
