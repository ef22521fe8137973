// The schemas that authors pass: Standard Schema (zod, valibot, arktype) with its JSON Schema, or plain JSON Schema.
import { RallyError } from '../protocol/errors.ts'
import { isTame, pathText } from '../protocol/json.ts'
import { reasonOf } from '../protocol/text.ts'
import { adviceFor, adviceForOther } from './advice.ts'

/**
 * A schema of any library that implements Standard Schema and its JSON Schema extension (zod 4.2, arktype 2.1.28; valibot, effect
 * and zod/mini through a function of theirs), or a plain JSON Schema object, as TypeBox makes them.
 */
export type Schema = StandardSchema | JsonSchemaObject

/** A plain JSON Schema. Its draft is 2020-12, or draft-07 if `$schema` says so. */
export interface JsonSchemaObject {
  readonly [keyword: string]: unknown
  readonly '~standard'?: never
  // Options of `io.ask`, which would pass for a schema.
  readonly withinMs?: never
  readonly otherwise?: never
}

/** Standard Schema v1 (standardschema.dev), and its JSON Schema extension, if the library has it. */
export interface StandardSchema<In = unknown, Out = In> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<Out> | Promise<StandardResult<Out>>
    readonly types?: { readonly input: In; readonly output: Out } | undefined
    readonly jsonSchema?: Record<Side, (options: { target: 'draft-2020-12' }) => Record<string, unknown>> | undefined
  }
}

/** The values that a schema accepts, or those that it returns: defaults and transforms make them differ. */
export type Side = 'input' | 'output'

export type StandardResult<Value> =
  | { readonly value: Value; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

export interface StandardIssue {
  readonly message: string
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined
}

/** The type of a value after validation. A plain JSON Schema has no type that TypeScript could know. */
export type Output<S extends Schema> = S extends StandardSchema
  ? NonNullable<S['~standard']['types']>['output']
  : Record<string, unknown>

/** The type of a value before validation. */
export type Input<S extends Schema> = S extends StandardSchema
  ? NonNullable<S['~standard']['types']>['input']
  : Record<string, unknown>

/** The schema of a handler that declares no arguments: it gets `{}`. */
export type NoArguments = StandardSchema<{}>

/** `paths` are where the issues are, without the words of the schema library, which may repeat values. */
export type Checked<Value> = { value: Value } | { issues: string[]; paths?: string[] }

/** A schema of arktype is a function, so objects and functions both qualify. */
export function isStandard(schema: unknown): schema is StandardSchema {
  if ((typeof schema !== 'object' && typeof schema !== 'function') || schema === null) return false
  const standard: unknown = '~standard' in schema ? schema['~standard'] : undefined
  return typeof standard === 'object' && standard !== null && 'validate' in standard
}

/** The JSON Schema of one side of a schema. */
export function jsonSchemaOf(schema: Schema, side: Side, where = 'This schema'): Record<string, unknown> {
  if (!isStandard(schema)) return plainSchema(schema, where)
  const { jsonSchema, vendor } = schema['~standard']
  if (!jsonSchema) throw new RallyError('SCHEMA_INVALID', `${where}: ${adviceFor(schema, vendor)}`)
  try {
    // A copy: zod adds a hidden `~standard` to the object, which would make it a Standard Schema.
    return { ...jsonSchema[side]({ target: 'draft-2020-12' }) }
  } catch (cause) {
    throw new RallyError(
      'SCHEMA_INVALID',
      `${where}: ${vendor} cannot write the ${side} of this schema as JSON Schema (${reasonOf(cause)}). ` +
        'Use types that JSON has, and convert the value in the handler.',
      { cause },
    )
  }
}

/** A schema that is not a Standard Schema. Throws if it is not a JSON Schema object either. */
export function plainSchema(schema: JsonSchemaObject, where: string): Record<string, unknown> {
  const advice = adviceForOther(schema)
  if (advice !== undefined) throw new RallyError('SCHEMA_INVALID', `${where}: ${advice}`)
  if (isTame(schema, DEEPEST)) return schema
  const why = `must be nested at most ${DEEPEST} levels deep, and have no infinite numbers`
  throw new RallyError('SCHEMA_INVALID', `${where}: a JSON Schema ${why}. Make it flatter.`)
}

/** Deeper values cannot be written by code that recurses. A form has 5 levels. */
const DEEPEST = 200

/** Validates a value. Returns a promise only if the schema does. */
export function checkStandard<Value>(
  schema: StandardSchema<unknown, Value>,
  value: unknown,
): Checked<Value> | Promise<Checked<Value>> {
  return readResult(schema['~standard'].validate(value))
}

export function readResult<Value>(
  result: StandardResult<Value> | Promise<StandardResult<Value>>,
): Checked<Value> | Promise<Checked<Value>> {
  return 'then' in result ? Promise.resolve(result).then(toChecked) : toChecked(result)
}

const MOST_ISSUES = 10

function toChecked<Value>(result: StandardResult<Value>): Checked<Value> {
  if (!result.issues) return { value: result.value }
  const first = result.issues.slice(0, MOST_ISSUES)
  const issues = first.map(issueText)
  const more = result.issues.length - issues.length
  if (more > 0) issues.push(`and ${more} more`)
  return { issues: issues.length > 0 ? issues : ['is not valid'], paths: [...new Set(first.map(pathOf))] }
}

function pathOf({ path = [] }: StandardIssue): string {
  return pathText(path.map((part) => (typeof part === 'object' ? part.key : part)))
}

function issueText(issue: StandardIssue): string {
  const path = pathOf(issue)
  // The messages of arktype begin with the path.
  return path === '' || issue.message.startsWith(`${path} `) ? issue.message : `${path}: ${issue.message}`
}
