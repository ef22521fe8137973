// Validators for plain JSON Schema. The library that does the work is loaded when the first one is made, so that an app
// whose schemas are zod's or another library's never loads it.
import { withAjv } from './ajv.ts'
import { withCfworker } from './cfworker.ts'
import { type Draft, draftOf } from './dialect.ts'
import { RallyError } from '../protocol/errors.ts'
import { toJsonText } from '../protocol/json.ts'
import { subschemas } from './subschemas.ts'
import type { Checked, Schema } from './standard.ts'
import { checkStandard, isStandard } from './standard.ts'

/** Gives a promise only where the schema itself is asynchronous. */
export type Check = (value: unknown) => Checked<unknown> | Promise<Checked<unknown>>

export function toCheck(schema: Schema, where: string): Check {
  if (isStandard(schema)) return (value) => checkStandard(schema, value)
  const problems = compileJsonSchema(schema, where)
  return (value) => {
    const issues = problems(value)
    return issues.length > 0 ? { issues } : { value }
  }
}

export type Validator = (value: unknown) => string[]

/**
 * A function that lists what is wrong with a value, empty when nothing is. It never throws. Making it does, with code
 * `SCHEMA`, where the schema is malformed, too large, of another dialect, or refers to what is not in it.
 */
export function compileJsonSchema(schema: Readonly<Record<string, unknown>>, where: string): Validator {
  const draft = draftOf(schema['$schema'], where)
  // A copy, because one engine writes into it, and so that a later change by the author has no effect on either.
  const copy: Record<string, unknown> = JSON.parse(toJsonText(schema, where))
  delete copy['$schema']
  const parts = subschemas(copy, where)
  if (parts.some((part) => part['$async'] !== undefined)) {
    throw new RallyError(
      'SCHEMA_INVALID',
      `${where}: the schema is asynchronous ("$async"), which JSON Schema is not; remove it.`,
    )
  }
  const validate = compiled(copy, parts, draft, where)
  return (value) => {
    try {
      return readable(validate(value))
    } catch (error) {
      return [
        error instanceof RangeError ? 'is nested too deeply to be checked' : `can not be checked: ${reason(error)}`,
      ]
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
      return withAjv(schema, draft)
    } catch (error) {
      // Ajv writes code, which some hosts forbid. The other engine is slower, and only reads the schema.
      if (error instanceof Error && error.name === 'EvalError') return withCfworker(schema, parts, draft)
      throw error
    }
  } catch (cause) {
    throw new RallyError('SCHEMA_INVALID', `${where}: the schema can not be used: ${reason(cause)}.`, { cause })
  }
}

const MOST_PROBLEMS = 10
const LONGEST = 300

function readable(problems: readonly string[]): string[] {
  if (problems.length === 0) return []
  const short = problems.map((text) => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text))
  return [...new Set(short)].slice(0, MOST_PROBLEMS)
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
