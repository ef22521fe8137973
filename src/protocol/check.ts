// Checks a value against a schema of the author's: one function, whatever library the schema is from.
import type { Checked, Schema } from './standard.ts'
import { checkStandard, isStandard } from './standard.ts'
import { compileJsonSchema } from './validator.ts'

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
