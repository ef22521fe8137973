// Validators for plain JSON Schema. Their library is loaded with the first schema: an app that uses zod or another
// Standard Schema never loads it.
import { withAjv } from './ajv.ts'
import { withCfworker } from './cfworker.ts'
import { RallyError } from '../protocol/errors.ts'
import { toJsonText } from '../protocol/json.ts'
import { cut, reasonOf } from '../protocol/text.ts'
import { type Draft, draftOf, subschemas } from './json-schema.ts'
import type { Checked, Schema } from './standard.ts'
import { checkStandard, isStandard, plainSchema, readResult } from './standard.ts'
import { zodValidate } from './zod.ts'

/** Checks a value. Returns a promise only if the schema is asynchronous. */
export type Check = (value: unknown) => Checked<unknown> | Promise<Checked<unknown>>

export function toCheck(schema: Schema, where: string): Check {
  if (isStandard(schema)) {
    const validate = zodValidate(schema)
    return (value) => (validate === undefined ? checkStandard(schema, value) : readResult(validate(value)))
  }
  const problems = compileJsonSchema(plainSchema(schema, where), where)
  return (value) => {
    const issues = problems(value)
    return issues.length > 0 ? { issues } : { value }
  }
}

export type Validator = (value: unknown) => string[]

/**
 * Returns a function that lists what is wrong with a value; the list is empty if the value is valid. It never throws.
 * Throws SCHEMA_INVALID if the schema is malformed, too large, of another draft, or has a reference out of itself.
 */
export function compileJsonSchema(schema: Readonly<Record<string, unknown>>, where: string): Validator {
  const draft = draftOf(schema['$schema'], where)
  // A copy: one validator modifies it, and a later change by the author must have no effect.
  const copy: Record<string, unknown> = JSON.parse(toJsonText(schema, where))
  delete copy['$schema']
  const parts = subschemas(copy, where)
  if (parts.some((part) => part['$async'] !== undefined)) {
    throw new RallyError(
      'SCHEMA_INVALID',
      `${where}: the schema has "$async", which is not part of JSON Schema. Remove it.`,
    )
  }
  const validate = compiled(copy, parts, draft, where)
  return (value) => {
    try {
      return readable(validate(value))
    } catch (error) {
      // A value with a property named toString or valueOf makes the validator throw while it compares. Its own words stay here.
      return [error instanceof RangeError ? 'is nested too deeply to be checked' : 'cannot be checked']
    }
  }
}

function compiled(
  schema: Record<string, unknown>,
  parts: readonly Record<string, unknown>[],
  draft: Draft,
  where: string,
): Validator {
  try {
    try {
      return withAjv(schema, draft) ?? withCfworker(schema, parts, draft)
    } catch (error) {
      // Ajv generates code, which some hosts forbid. The other validator is slower and interprets the schema.
      if (error instanceof Error && error.name === 'EvalError') return withCfworker(schema, parts, draft)
      throw error
    }
  } catch (cause) {
    throw new RallyError('SCHEMA_INVALID', `${where}: the schema cannot be used: ${reasonOf(cause)}.`, { cause })
  }
}

const MOST_PROBLEMS = 10
const LONGEST = 300

function readable(problems: readonly string[]): string[] {
  if (problems.length === 0) return []
  return [...new Set(problems.map((text) => cut(text, LONGEST)))].slice(0, MOST_PROBLEMS)
}
