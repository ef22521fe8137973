// Checks a structured result against the schema that its tool declares. Schema and result both come from an untrusted
// server: regular expressions are not run, nothing is fetched, and a slow check is cut off.
import type * as vm from 'node:vm'
import { subschemas } from '../schema/json-schema.ts'
import type { Validator } from '../schema/validator.ts'
import { compileJsonSchema } from '../schema/validator.ts'
import { withinSize } from '../protocol/json.ts'

/** A schema and a value of up to this many parts are checked quickly, unless the schema has one of the keywords below. */
const SMALL = 2_000
/** They can make a check visit a part more than once. */
const SLOW_KEYWORDS = ['$ref', '$dynamicRef', '$recursiveRef', 'uniqueItems']

const MAX_CHECK_MS = 500

/** Returns a function that lists what does not match. Throws `SCHEMA_INVALID` if the schema cannot be used. */
export function compileOutputCheck(schema: Readonly<Record<string, unknown>>, where: string): Validator {
  const copy: Record<string, unknown> = structuredClone(schema)
  const parts = subschemas(copy, where)
  removePatterns(parts)
  const validate = compileJsonSchema(copy, where)
  const isQuick = withinSize(copy, SMALL) && !parts.some((part) => SLOW_KEYWORDS.some((keyword) => keyword in part))
  return (value) => (isQuick && withinSize(value, SMALL) ? validate(value) : boundedInTime(() => validate(value)))
}

/** Whatever a pattern would have checked is accepted. */
function removePatterns(parts: readonly Record<string, unknown>[]): void {
  const hasPatternProperties = parts.some((part) => 'patternProperties' in part)
  for (const part of parts) {
    if (typeof part['pattern'] === 'string') delete part['pattern']
    if ('patternProperties' in part) {
      delete part['patternProperties']
      delete part['additionalProperties']
    }
    if (hasPatternProperties) delete part['unevaluatedProperties']
  }
}

function boundedInTime(validate: () => string[]): string[] {
  const run = (runBounded ??= newRunBounded())
  try {
    return run(validate)
  } catch (error) {
    const { code } = error as { code?: unknown }
    if (code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return [`takes longer than ${MAX_CHECK_MS} ms to check`]
    throw error
  }
}

type RunBounded = (run: () => string[]) => string[]

let runBounded: RunBounded | undefined

/** A script of node:vm has a time limit, which includes the functions that it calls. Without node:vm there is no limit. */
function newRunBounded(): RunBounded {
  const module: typeof vm | undefined = globalThis.process?.getBuiltinModule?.('node:vm')
  if (module === undefined) return (run) => run()
  const { createContext, Script } = module
  const context: { run?: () => string[] } = createContext({})
  const script = new Script('run()')
  return (run) => {
    context.run = run
    try {
      return script.runInContext(context, { timeout: MAX_CHECK_MS }) as string[]
    } finally {
      delete context.run
    }
  }
}
