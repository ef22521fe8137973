// How zod validates a schema that may be asynchronous.
//
// `~standard.validate` of zod tries without promises first, and runs the schema again if it meets one. The promise of the first try is
// dropped: if it rejects, because an async refinement could not reach its database, the process ends. So such a schema is run once here.
import { isObject } from '../protocol/json.ts'
import type { StandardResult, StandardSchema } from './standard.ts'

interface Payload {
  readonly value: unknown
  readonly issues: readonly unknown[]
}

interface ZodSchema extends StandardSchema {
  readonly _zod: {
    readonly def: object
    readonly run: (payload: Payload, options: { async: true }) => Payload | Promise<Payload>
  }
  readonly safeParseAsync: (
    value: unknown,
  ) => Promise<{ data?: unknown; error?: Extract<StandardResult<unknown>, { issues: object }> }>
}

/** The validation of a zod schema in which an author's function is. `undefined` for every other schema. */
export function zodValidate(schema: StandardSchema): StandardSchema['~standard']['validate'] | undefined {
  if (!isZod(schema) || !hasFunction(schema._zod.def, new Set())) return undefined
  return (value) => {
    const run = schema._zod.run({ value, issues: [] }, { async: true })
    // Only zod itself can word the issues. The second run meets no promise either.
    if (!(run instanceof Promise))
      return run.issues.length === 0 ? { value: run.value } : schema['~standard'].validate(value)
    return run.then((done) => (done.issues.length === 0 ? { value: done.value } : worded(schema, value)))
  }
}

async function worded(schema: ZodSchema, value: unknown): Promise<StandardResult<unknown>> {
  const { data, error } = await schema.safeParseAsync(value)
  return error === undefined ? { value: data } : { issues: error.issues }
}

function isZod(schema: StandardSchema): schema is ZodSchema {
  const { _zod: zod, safeParseAsync } = schema as Partial<ZodSchema>
  return schema['~standard'].vendor === 'zod' && typeof zod?.run === 'function' && typeof safeParseAsync === 'function'
}

/** True if there is a function in the definition of the schema, or of one that it is made of. */
function hasFunction(part: unknown, seen: Set<unknown>): boolean {
  if (typeof part === 'function') return true
  if (typeof part !== 'object' || part === null || seen.has(part)) return false
  seen.add(part)
  const { _zod: zod } = part as { _zod?: unknown }
  const inner = isObject(zod) && 'def' in zod ? zod['def'] : part
  return Object.values(inner as object).some((each) => hasFunction(each, seen))
}
