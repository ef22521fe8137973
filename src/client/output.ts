// Checks a structured result against the schema that its tool declares. Schema and result both come from an untrusted
// server: regular expressions are not run, nothing is fetched, and what takes too long is cut off. So compiling the schema
// and checking a result are both bounded, in time where node:vm can stop them, and otherwise in steps.
import type * as vm from 'node:vm'
import { RallyError } from '../protocol/errors.ts'
import { isTame, withinSize } from '../protocol/json.ts'
import { childrenOf, references, subschemas } from '../schema/json-schema.ts'
import type { Validator } from '../schema/validator.ts'
import { compileJsonSchema } from '../schema/validator.ts'

/** A schema and a value of up to this many parts are checked quickly, unless the schema has one of the keywords below. */
const SMALL = 2_000
/** They can make a check visit a part more than once. */
const SLOW_KEYWORDS = ['$ref', '$dynamicRef', '$recursiveRef', 'uniqueItems']

const MAX_CHECK_MS = 500
/** Longer than a check: it is done once for each tool, and what is cut off here is not checked at all. */
const MAX_COMPILE_MS = 2_000

const MAX_SCHEMA_DEPTH = 256
/** Characters of a schema, and its properties and items at all depths. */
const STOPPABLE = { schemaLength: 262_144, schemaSize: 20_000 }

/** Where nothing can be stopped: what compiles in less than `MAX_COMPILE_MS`, and the most subschemas times values. */
const UNSTOPPABLE = { schemaLength: 16_384, schemaSize: 1_000, steps: 1_000_000 }

/** Their values may look like schemas, and a validator may find an "$id" in them. */
const ANNOTATIONS = ['default', 'examples', 'example']

/** Runs a function with a time limit. */
export type RunBounded = <T>(run: () => T, maxMs: number) => T | undefined

/**
 * Returns a function that lists what does not match. Throws `SCHEMA_INVALID` if the schema cannot be used. `runBounded`
 * returns undefined when the time is over. If it is null, everything is bounded in steps.
 */
export function compileOutputCheck(
  schema: Readonly<Record<string, unknown>>,
  where: string,
  runBounded: RunBounded | null = platformBound() ?? null,
): Validator {
  if (runBounded === null) {
    const { validate, parts, targets } = compile(boundedCopy(schema, where, UNSTOPPABLE), where)
    return boundedInSteps(validate, parts, targets)
  }
  const copy = boundedCopy(schema, where, STOPPABLE)
  const { validate, parts } = compileBounded(copy, where, runBounded)
  const isQuick = withinSize(copy, SMALL) && !parts.some((part) => SLOW_KEYWORDS.some((keyword) => keyword in part))
  return (value) => {
    if (isQuick && withinSize(value, SMALL)) return validate(value)
    return runBounded(() => validate(value), MAX_CHECK_MS) ?? [`takes longer than ${MAX_CHECK_MS} ms to check`]
  }
}

type SchemaPart = Record<string, unknown>

/** A schema that is ready to check results. */
interface CompiledSchema {
  readonly validate: Validator
  /** The schema and all schemas inside it. */
  readonly parts: readonly SchemaPart[]
  /** The schemas that each part refers to. */
  readonly targets: ReadonlyMap<SchemaPart, readonly SchemaPart[]>
}

function boundedCopy(
  schema: Readonly<Record<string, unknown>>,
  where: string,
  { schemaLength: maxLength, schemaSize: maxSize }: Pick<typeof UNSTOPPABLE, 'schemaLength' | 'schemaSize'>,
): SchemaPart {
  if (!withinSize(schema, maxSize)) throw unusable(where, `has more than ${maxSize} properties and items`)
  if (!isTame(schema, MAX_SCHEMA_DEPTH)) throw unusable(where, `is nested past ${MAX_SCHEMA_DEPTH} levels`)
  const text = JSON.stringify(schema)
  if (text.length > maxLength) throw unusable(where, `has ${text.length} characters, and the limit is ${maxLength}`)
  return JSON.parse(text) as SchemaPart
}

function compileBounded(schema: SchemaPart, where: string, runBounded: RunBounded): CompiledSchema {
  // Loads the validator of this draft. What is loaded halfway could never be used again.
  const { $schema } = schema
  compileJsonSchema($schema === undefined ? {} : { $schema }, where)
  const compiled = runBounded(() => compile(schema, where), MAX_COMPILE_MS)
  if (compiled === undefined) throw unusable(where, `takes longer than ${MAX_COMPILE_MS} ms to compile`)
  return compiled
}

/** Changes the schema. To find what each reference points to takes time too, so that belongs to what is bounded. */
function compile(schema: SchemaPart, where: string): CompiledSchema {
  const parts = subschemas(schema, where)
  const targets = references(parts, where)
  removeUnsafe(parts)
  return { validate: compileJsonSchema(schema, where), parts, targets }
}

/** Patterns may take for ever, so what a pattern would have checked is accepted. Annotations are no part of a check. */
function removeUnsafe(parts: readonly SchemaPart[]): void {
  const hasPatternProperties = parts.some((part) => 'patternProperties' in part)
  for (const part of parts) {
    if (typeof part['pattern'] === 'string') delete part['pattern']
    for (const annotation of ANNOTATIONS) delete part[annotation]
    if ('patternProperties' in part) {
      delete part['patternProperties']
      delete part['additionalProperties']
    }
    if (hasPatternProperties) delete part['unevaluatedProperties']
  }
}

/** A check visits each part of the value at most once for each subschema, if every reference is a copy of its target. */
function boundedInSteps(
  validate: Validator,
  parts: readonly SchemaPart[],
  targets: ReadonlyMap<SchemaPart, readonly SchemaPart[]>,
): Validator {
  const size = expandedSize(parts, targets)
  const maxValues = Math.floor(UNSTOPPABLE.steps / size)
  // It compares each item with each other one.
  const comparesItems = parts.some((part) => part['uniqueItems'] === true)
  const most = comparesItems ? Math.floor(Math.sqrt(maxValues)) : maxValues
  return (value) =>
    most > 0 && withinSize(value, most - 1) ? validate(value) : ['takes too many steps to check on this platform']
}

/** How many subschemas there are with every reference replaced by its target. Infinity if a schema refers to itself. */
function expandedSize(parts: readonly SchemaPart[], targets: ReadonlyMap<SchemaPart, readonly SchemaPart[]>): number {
  const sizes = new Map<SchemaPart, number>()
  const sizeOf = (part: SchemaPart): number => {
    const known = sizes.get(part)
    if (known !== undefined) return known
    // A part that needs this size in the meantime is inside it, so it refers back.
    sizes.set(part, Infinity)
    const inner = [...childrenOf(part), ...(targets.get(part) ?? [])]
    const size = inner.reduce((sum, each) => sum + sizeOf(each), 1)
    sizes.set(part, size)
    return size
  }
  return parts.length === 0 ? 1 : sizeOf(parts[0] ?? {})
}

function unusable(where: string, why: string): RallyError {
  return new RallyError('SCHEMA_INVALID', `${where}: the schema ${why}.`)
}

let platform: { readonly runBounded: RunBounded | undefined } | undefined

function platformBound(): RunBounded | undefined {
  platform ??= { runBounded: newRunBounded() }
  return platform.runBounded
}

/** A script of node:vm has a time limit, which includes the functions that it calls. Some platforms have only its name. */
function newRunBounded(): RunBounded | undefined {
  const module: typeof vm | undefined = globalThis.process?.getBuiltinModule?.('node:vm')
  if (module === undefined) return undefined
  try {
    const { createContext, Script } = module
    const context: { run?: () => unknown } = createContext({})
    const script = new Script('run()')
    const runBounded = <T>(run: () => T, maxMs: number): T | undefined => {
      context.run = run
      try {
        return script.runInContext(context, { timeout: maxMs }) as T
      } catch (error) {
        if ((error as { code?: unknown }).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return undefined
        throw error
      } finally {
        delete context.run
      }
    }
    return runBounded(() => true, MAX_CHECK_MS) === true ? runBounded : undefined
  } catch {
    return undefined
  }
}
