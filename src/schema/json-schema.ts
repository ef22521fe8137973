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

/** One of the schemas that `subschemas` found. */
type SchemaPart = Record<string, unknown>

const REFERENCES = ['$ref', '$dynamicRef', '$recursiveRef']

/**
 * The schemas that each schema refers to. `parts` are the schema and all schemas inside it. Throws SCHEMA_INVALID if a
 * reference points to anything else: a value under "default" or "enum" may look like a schema, and nobody has checked it.
 */
export function references(parts: readonly SchemaPart[], where: string): Map<SchemaPart, SchemaPart[]> {
  const schemas = new Set<unknown>(parts)
  const roots = parts.filter((part, index) => index === 0 || typeof part['$id'] === 'string')
  const found = new Map<SchemaPart, SchemaPart[]>()
  for (const part of parts) {
    for (const reference of REFERENCES.map((keyword) => part[keyword])) {
      if (typeof reference !== 'string') continue
      const targets = targetsOf(reference, parts, roots)
      if (targets.length === 0 || !targets.every((target) => schemas.has(target) || typeof target === 'boolean')) {
        throw invalid(where, `refers to ${shown(reference)}, which is not a schema inside it. Put that under "$defs".`)
      }
      found.set(part, [...(found.get(part) ?? []), ...targets.filter(isObject)])
    }
  }
  return found
}

/** True if a JSON pointer leads into a value, such as that of "default". */
export function pointsIntoValue(keys: readonly string[]): boolean {
  let isName = false
  for (const key of keys) {
    if (!isName && VALUE_KEYWORDS.has(key)) return true
    isName = !isName && NAMING_KEYWORDS.has(key)
  }
  return false
}

/** Everything that a reference may point to, whichever schema with an "$id" it is relative to. */
function targetsOf(reference: string, parts: readonly SchemaPart[], roots: readonly SchemaPart[]): unknown[] {
  const fragment = /#(.*)$/s.exec(reference)?.[1] ?? ''
  if (fragment === '') return [...roots]
  if (fragment.startsWith('/')) {
    const keys = fragment
      .slice(1)
      .split('/', MOST_KEYS + 1)
      .map(keyOf)
    // A validator may decode a key once more, and find something else.
    if (keys.length > MOST_KEYS || keys.some((key) => key.includes('%'))) return []
    return roots.map((root) => pointed(root, keys)).filter((each) => each !== undefined)
  }
  const names = ['$anchor', '$dynamicAnchor'].flatMap((keyword) => parts.filter((part) => part[keyword] === fragment))
  return [...names, ...parts.filter((part) => part['$id'] === `#${fragment}`)]
}

/** A schema is at most two keys below the one around it: a keyword, and a name or an index. */
const MOST_KEYS = 2 * DEEPEST

function pointed(root: SchemaPart, keys: readonly string[]): unknown {
  let found: unknown = root
  for (const key of keys) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, key)) return undefined
    found = Reflect.get(found, key)
  }
  return found
}

/** The key that a part of a JSON pointer stands for. */
export function keyOf(part: string): string {
  return percentDecoded(part).replaceAll('~1', '/').replaceAll('~0', '~')
}

/** Libraries do not encode names in references, so a percent sign may be part of a name. */
function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The schemas directly inside a schema. */
export function childrenOf(schema: Record<string, unknown>): Record<string, unknown>[] {
  return Object.entries(schema).flatMap(([keyword, value]) => {
    if (VALUE_KEYWORDS.has(keyword)) return []
    const candidates = NAMING_KEYWORDS.has(keyword) && isObject(value) ? Object.values(value) : [value].flat()
    return candidates.filter(isObject)
  })
}

function invalid(where: string, why: string): RallyError {
  return new RallyError('SCHEMA_INVALID', `${where}: the schema ${why}`)
}
