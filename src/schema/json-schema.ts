// Reads a JSON Schema before it is used: its draft, and every schema inside it. A schema may come from an untrusted server,
// so its depth and size are limited.
import { RallyError } from '../protocol/errors.ts'
import { isObject } from '../protocol/json.ts'
import { shown } from '../protocol/text.ts'

export type Draft = '2020-12' | '7'

/** The draft that `$schema` names. Without one it is 2020-12, as the protocol says. */
export function draftOf(dialect: unknown, where: string): Draft {
  if (dialect === undefined) return '2020-12'
  const address = typeof dialect === 'string' ? dialect.replace(/^https?:\/\//, '').replace(/#$/, '') : ''
  const draft = DRAFTS.get(address)
  if (draft !== undefined) return draft
  throw new RallyError(
    'SCHEMA_INVALID',
    `${where}: "$schema" must be draft 2020-12 or draft-07, got ${shown(dialect)}. Write the schema in one of them.`,
  )
}

const DRAFTS: ReadonlyMap<string, Draft> = new Map([
  ['json-schema.org/draft/2020-12/schema', '2020-12'],
  ['json-schema.org/draft-07/schema', '7'],
])

/** Keywords that contain values. A value may look like a schema, but is not one. */
export const VALUE_KEYWORDS: ReadonlySet<string> = new Set(['const', 'default', 'enum', 'examples', 'example'])

/** Keywords that contain an object whose keys are names that the author chose. */
export const NAMING_KEYWORDS: ReadonlySet<string> = new Set([
  '$defs',
  'definitions',
  'dependencies',
  'dependentRequired',
  'dependentSchemas',
  'patternProperties',
  'properties',
])

const DEEPEST = 64
const MOST = 2000

/** The schema and all schemas inside it. Unknown keywords are searched too, because a reference may point there. */
export function subschemas(schema: Record<string, unknown>, where: string): Record<string, unknown>[] {
  const found = [schema]
  const depths = [1]
  for (let index = 0; index < found.length; index++) {
    const depth = (depths[index] ?? 0) + 1
    for (const child of childrenOf(found[index] ?? {})) {
      if (depth > DEEPEST) throw invalid(where, `is nested past ${DEEPEST} levels. Make it flatter.`)
      if (found.length === MOST) throw invalid(where, `contains more than ${MOST} schemas. Make it smaller.`)
      found.push(child)
      depths.push(depth)
    }
  }
  return found
}

function childrenOf(schema: Record<string, unknown>): Record<string, unknown>[] {
  return Object.entries(schema).flatMap(([keyword, value]) => {
    if (VALUE_KEYWORDS.has(keyword)) return []
    const candidates = NAMING_KEYWORDS.has(keyword) && isObject(value) ? Object.values(value) : [value].flat()
    return candidates.filter(isObject)
  })
}

function invalid(where: string, why: string): RallyError {
  return new RallyError('SCHEMA_INVALID', `${where}: the schema ${why}`)
}
