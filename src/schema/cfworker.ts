// Validation by @cfworker/json-schema, which reads a schema as it goes: for hosts that forbid code generation.
import { createRequire } from 'node:module'
import type * as cfworker from '@cfworker/json-schema'
import type { Draft } from './dialect.ts'

const load = createRequire(import.meta.url)

/** `parts` are the schema and all below it; they are written to. */
export function withCfworker(
  schema: Record<string, unknown>,
  parts: readonly Record<string, unknown>[],
  draft: Draft,
): (value: unknown) => string[] {
  const library: typeof cfworker = load('@cfworker/json-schema')
  for (const part of parts) {
    if (part['$dynamicRef'] !== undefined) throw new Error('"$dynamicRef" does not work where code generation is off')
    // Ajv is told not to look at formats, and the two must agree.
    if (typeof part['format'] === 'string') delete part['format']
  }
  const validator = new library.Validator(schema, draft)
  const unresolved = unresolvedIn(library.dereference(schema))
  if (unresolved !== undefined) throw new Error(`can't resolve reference ${unresolved}`)
  return (value) => {
    const { valid, errors } = validator.validate(value)
    if (valid) return []
    const telling = errors.filter(({ keyword }) => !WRAPPING.has(keyword))
    return telling.length > 0 ? telling.map(textOf) : ['is not valid']
  }
}

/** The engine itself would only notice when a value leads it there. */
function unresolvedIn(known: Record<string, cfworker.Schema | boolean>): string | undefined {
  for (const part of Object.values(known)) {
    if (typeof part === 'boolean' || part.$ref === undefined) continue
    if (known[part.__absolute_ref__ ?? part.$ref] === undefined) return part.$ref
  }
  return undefined
}

/** Errors of these keywords only say that there is another further in. */
const WRAPPING = new Set([
  '$ref',
  'additionalItems',
  'additionalProperties',
  'allOf',
  'dependentSchemas',
  'items',
  'patternProperties',
  'prefixItems',
  'properties',
  'unevaluatedItems',
  'unevaluatedProperties',
])

function textOf({ instanceLocation, keyword, error }: cfworker.OutputUnit): string {
  const text = keyword === 'false' ? 'is not allowed' : error.replace(/^Instance /, '').replace(/\.$/, '')
  return `${instanceLocation.slice(1)} ${text}`.trimStart()
}
