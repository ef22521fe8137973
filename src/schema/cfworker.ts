// Validates with @cfworker/json-schema, which interprets the schema. For hosts that forbid code generation.
import type * as cfworker from '@cfworker/json-schema'
import { cfworker as load } from '#json-schema-libraries'
import type { Draft } from './json-schema.ts'

/** `parts` are the schema and all schemas inside it. They are modified. */
export function withCfworker(
  schema: Record<string, unknown>,
  parts: readonly Record<string, unknown>[],
  draft: Draft,
): (value: unknown) => string[] {
  const library = load()
  for (const part of parts) {
    if (part['$dynamicRef'] !== undefined)
      throw new Error('"$dynamicRef" is not supported where code generation is forbidden')
    // Ajv ignores formats (`validateFormats: false`), and both validators must agree.
    if (typeof part['format'] === 'string') delete part['format']
  }
  const validator = new library.Validator(schema, draft)
  const unresolved = unresolvedIn(library.dereference(schema))
  if (unresolved !== undefined) throw new Error(`can't resolve reference ${unresolved}`)
  return (value) => {
    const { valid, errors } = validator.validate(value)
    if (valid) return []
    const causes = errors.filter(({ keyword }) => !WRAPPING.has(keyword))
    return causes.length > 0 ? causes.map(textOf) : ['is not valid']
  }
}

/** The validator itself notices a missing reference only when a value reaches it. */
function unresolvedIn(known: Record<string, cfworker.Schema | boolean>): string | undefined {
  for (const part of Object.values(known)) {
    if (typeof part === 'boolean' || part.$ref === undefined) continue
    if (known[part.__absolute_ref__ ?? part.$ref] === undefined) return part.$ref
  }
  return undefined
}

/** An error of these keywords only says that a schema inside has an error. */
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
