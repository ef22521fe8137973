// Validates with ajv, which compiles a schema to code. Loaded with the first schema, because loading it takes long.
import { createRequire } from 'node:module'
import type * as draft7 from 'ajv'
import type * as draft2020 from 'ajv/dist/2020.js'
import type { Draft } from './json-schema.ts'

const load = createRequire(import.meta.url)

const OPTIONS: draft7.Options = {
  strict: false,
  allErrors: false,
  validateFormats: false,
  ownProperties: true,
  // Inlining would let a small schema with many references compile to a large program.
  inlineRefs: false,
  logger: false,
}

export function withAjv(schema: Record<string, unknown>, draft: Draft): (value: unknown) => string[] {
  const meta = (metaValidators[draft] ??= newAjv(draft, OPTIONS))
  if (meta.validateSchema(schema) !== true) throw new Error(meta.errorsText(meta.errors, { dataVar: '' }))
  // One instance per schema: an $id in one schema must not be visible in another.
  const validate = newAjv(draft, { ...OPTIONS, meta: false, validateSchema: false }).compile(schema)
  return (value) => (validate(value) ? [] : (validate.errors ?? []).map(textOf))
}

/** Reused: validating a first schema takes a hundred times as long as the next ones. */
const metaValidators: Partial<Record<Draft, draft7.Ajv>> = {}

function newAjv(draft: Draft, options: draft7.Options): draft7.Ajv {
  if (draft === '7') {
    const library: typeof draft7 = load('ajv')
    return new library.Ajv(options)
  }
  const library: typeof draft2020 = load('ajv/dist/2020.js')
  return new library.Ajv2020(options)
}

function textOf({ instancePath, message = 'is not valid', params }: draft7.ErrorObject): string {
  const detail: unknown =
    params['additionalProperty'] ?? params['unevaluatedProperty'] ?? params['allowedValues'] ?? params['allowedValue']
  const text = detail === undefined ? message : `${message}: ${JSON.stringify(detail)}`
  return `${instancePath} ${text}`.trimStart()
}
