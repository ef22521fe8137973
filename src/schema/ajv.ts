// Validates with ajv, which compiles a schema to code. Loaded with the first schema, because loading it takes long.
import type { Ajv, ErrorObject, Options } from 'ajv'
import { ajv } from '#json-schema-libraries'
import type { Draft } from './json-schema.ts'

const OPTIONS: Options = {
  strict: false,
  allErrors: false,
  validateFormats: false,
  ownProperties: true,
  // Inlining would let a small schema with many references compile to a large program.
  inlineRefs: false,
  logger: false,
}

/** Returns `undefined` where ajv is not part of the build. */
export function withAjv(schema: Record<string, unknown>, draft: Draft): ((value: unknown) => string[]) | undefined {
  if (ajv === undefined) return undefined
  const Library = ajv(draft)
  const meta = (metaValidators[draft] ??= new Library(OPTIONS))
  if (meta.validateSchema(schema) !== true) throw new Error(meta.errorsText(meta.errors, { dataVar: '' }))
  // One instance per schema: an $id in one schema must not be visible in another.
  const validate = new Library({ ...OPTIONS, meta: false, validateSchema: false }).compile(schema)
  return (value) => (validate(value) ? [] : (validate.errors ?? []).map(textOf))
}

/** Reused: validating a first schema takes a hundred times as long as the next ones. */
const metaValidators: Partial<Record<Draft, Ajv>> = {}

function textOf({ instancePath, message = 'is not valid', params }: ErrorObject): string {
  const detail: unknown =
    params['additionalProperty'] ?? params['unevaluatedProperty'] ?? params['allowedValues'] ?? params['allowedValue']
  const text = detail === undefined ? message : `${message}: ${JSON.stringify(detail)}`
  return `${instancePath} ${text}`.trimStart()
}
