// Schemas as authors bring them: Standard Schema (zod, valibot, arktype) with its JSON Schema, or plain JSON Schema.
import { RallyError } from '../protocol/errors.ts'
import { pathText } from '../protocol/json.ts'

export type Schema = StandardSchema | JsonSchemaObject

/** A plain JSON Schema, draft 2020-12 unless its `$schema` says draft-07. */
export interface JsonSchemaObject {
  readonly [keyword: string]: unknown
  readonly '~standard'?: never
}

/** Standard Schema v1 (standardschema.dev), with the Standard JSON Schema extension where the library has it. */
export interface StandardSchema<In = unknown, Out = In> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<Out> | Promise<StandardResult<Out>>
    readonly types?: { readonly input: In; readonly output: Out } | undefined
    readonly jsonSchema?: Record<Side, (options: { target: 'draft-2020-12' }) => Record<string, unknown>> | undefined
  }
}

/** `input` is what a schema takes, `output` what it gives: they differ by defaults and transforms. */
export type Side = 'input' | 'output'

export type StandardResult<Value> =
  | { readonly value: Value; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

export interface StandardIssue {
  readonly message: string
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined
}

/** What a value is once it has been through the schema. Plain JSON Schema says nothing of its type to TypeScript. */
export type Output<S extends Schema> = S extends StandardSchema
  ? NonNullable<S['~standard']['types']>['output']
  : Record<string, unknown>

/** What a value is on its way into the schema. */
export type Input<S extends Schema> = S extends StandardSchema
  ? NonNullable<S['~standard']['types']>['input']
  : Record<string, unknown>

export type Checked<Value> = { value: Value } | { issues: string[] }

/** Arktype's schemas are functions, so both kinds of thing may be one. */
export function isStandard(schema: unknown): schema is StandardSchema {
  if ((typeof schema !== 'object' && typeof schema !== 'function') || schema === null) return false
  const standard: unknown = '~standard' in schema ? schema['~standard'] : undefined
  return typeof standard === 'object' && standard !== null && 'validate' in standard
}

/** The JSON Schema of what a schema takes or gives; a plain one is its own. */
export function jsonSchemaOf(schema: Schema, side: Side, where = 'This schema'): Record<string, unknown> {
  if (!isStandard(schema)) return schema
  const { jsonSchema, vendor } = schema['~standard']
  if (!jsonSchema) throw new RallyError('SCHEMA_INVALID', `${where}: ${withoutJsonSchema(vendor)}`)
  try {
    // A copy, because zod hangs a hidden `~standard` on what it returns, which would then pass for a Standard Schema.
    return { ...jsonSchema[side]({ target: 'draft-2020-12' }) }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new RallyError(
      'SCHEMA_INVALID',
      `${where}: ${vendor} can not write the ${side} of this schema as JSON Schema (${reason}). ` +
        'Use types that JSON has, and transform the value in the handler.',
      { cause },
    )
  }
}

/** Runs the schema on a value. Gives a promise only where the schema itself does. */
export function checkStandard<Value>(
  schema: StandardSchema<unknown, Value>,
  value: unknown,
): Checked<Value> | Promise<Checked<Value>> {
  const result = schema['~standard'].validate(value)
  return 'then' in result ? Promise.resolve(result).then(toChecked) : toChecked(result)
}

const MOST_ISSUES = 10

function toChecked<Value>(result: StandardResult<Value>): Checked<Value> {
  if (!result.issues) return { value: result.value }
  const issues = result.issues.slice(0, MOST_ISSUES).map(issueText)
  const more = result.issues.length - issues.length
  if (more > 0) issues.push(`and ${more} more`)
  return { issues: issues.length > 0 ? issues : ['is not valid'] }
}

function issueText(issue: StandardIssue): string {
  const path = pathText((issue.path ?? []).map((part) => (typeof part === 'object' ? part.key : part)))
  // Arktype's messages begin with the path already.
  return path === '' || issue.message.startsWith(`${path} `) ? issue.message : `${path}: ${issue.message}`
}

function withoutJsonSchema(vendor: string): string {
  if (vendor === 'valibot') {
    return (
      'a valibot schema does not bring its JSON Schema along. Wrap it: toStandardJsonSchema(schema), ' +
      "from '@valibot/to-json-schema'."
    )
  }
  return (
    `this ${vendor} schema does not bring its JSON Schema along ("~standard".jsonSchema). ` +
    `Update ${vendor} to a version that does (zod 4.2, arktype 2.1.28), or pass a plain JSON Schema object.`
  )
}
