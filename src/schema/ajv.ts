// Validation by ajv, which turns a schema into code.
import { createRequire } from 'node:module'
import type * as draft7 from 'ajv'
import type * as draft2020 from 'ajv/dist/2020.js'
import type { Draft } from './dialect.ts'

const load = createRequire(import.meta.url)

const OPTIONS: draft7.Options = {
  strict: false,
  allErrors: false,
  validateFormats: false,
  ownProperties: true,
  // Copies of what is referred to would let a small schema become a large program.
  inlineRefs: false,
  logger: false,
}

export function withAjv(schema: Record<string, unknown>, draft: Draft): (value: unknown) => string[] {
  const meta = (metaValidators[draft] ??= newAjv(draft, OPTIONS))
  if (meta.validateSchema(schema) !== true) throw new Error(meta.errorsText(meta.errors, { dataVar: '' }))
  // One of its own, because names in one schema must not mean anything in another.
  const validate = newAjv(draft, { ...OPTIONS, meta: false, validateSchema: false }).compile(schema)
  return (value) => (validate(value) ? [] : (validate.errors ?? []).map(textOf))
}

/** Kept, because the first use of one takes a hundred times as long as a validator does. */
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
