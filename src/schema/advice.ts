// What to do with a schema whose library gives no JSON Schema: one sentence that is right for the library and its version.
import { isObject } from '../protocol/json.ts'

/** Advice for a Standard Schema without its JSON Schema extension. */
export function adviceFor(schema: object, vendor: string): string {
  switch (vendor) {
    case 'zod':
      return adviceForZod(schema)
    case 'valibot':
      return "a schema of valibot has no JSON Schema by itself. Wrap it: toStandardJsonSchema(schema), from '@valibot/to-json-schema'."
    case 'arktype':
      return 'this version of arktype gives no JSON Schema. Update arktype to 2.1.28 or later.'
    case 'effect':
      return EFFECT
    default:
      return `this schema of ${vendor} has no JSON Schema ("~standard".jsonSchema). Use a version of ${vendor} that implements Standard JSON Schema, or pass a JSON Schema object.`
  }
}

/** Advice for a value that looks like neither a Standard Schema nor a JSON Schema. `undefined` if it may be a JSON Schema. */
export function adviceForOther(schema: unknown): string | undefined {
  if (isEffect(schema)) return EFFECT
  if (isObject(schema)) return undefined
  const what = Array.isArray(schema) ? 'an array' : schema === null ? 'null' : `a ${typeof schema}`
  return `it must be a Standard Schema, such as z.object({ … }) of zod, or a JSON Schema object, got ${what}.`
}

const EFFECT =
  'a schema of effect has no JSON Schema by itself. With effect 4 wrap it: Schema.toStandardJSONSchemaV1(Schema.toStandardSchemaV1(schema)). With effect 3 pass JSONSchema.make(schema).'

/** The first version of zod 4 whose schemas give their JSON Schema. */
const ZOD = { major: 4, minor: 2 }

/** Schemas of zod 4 have `_zod` with the version; those of zod 3 do not. */
function adviceForZod(schema: object): string {
  const internals: unknown = '_zod' in schema ? schema._zod : undefined
  const version: unknown = isObject(internals) ? internals['version'] : undefined
  const { major, minor, patch } = isObject(version) ? version : {}
  if (typeof major !== 'number' || typeof minor !== 'number') {
    return "this schema is of zod 3, which has no JSON Schema. Update zod to 4.2 or later, and import it from 'zod', not 'zod/v3'."
  }
  if (major < ZOD.major || (major === ZOD.major && minor < ZOD.minor)) {
    return `this schema is of zod ${major}.${minor}.${String(patch)}, which gives its JSON Schema to nobody. Update zod to 4.2 or later, or pass z.toJSONSchema(schema).`
  }
  return 'a schema of zod/mini has no JSON Schema by itself. Pass z.toJSONSchema(schema): it validates with the schema, and keeps its types.'
}

function isEffect(schema: unknown): boolean {
  if ((typeof schema !== 'object' && typeof schema !== 'function') || schema === null) return false
  return Symbol.for('effect/Schema') in schema || '~effect/Schema/Schema' in schema
}
