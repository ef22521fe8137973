// Whether a structured result fits the schema that its tool declares. Schema and result are both the server's: no pattern
// of its is run, nothing is fetched, and a check that would take long is cut off.
import { createRequire } from 'node:module'
import type * as vm from 'node:vm'
import { subschemas } from '../schema/json-schema.ts'
import type { Validator } from '../schema/validator.ts'
import { compileJsonSchema } from '../schema/validator.ts'
import { withinSize } from '../protocol/json.ts'

/** Up to here, and without what may take more than one look at each part, a check is quick. */
const SMALL = 2_000
const LONG = ['$ref', '$dynamicRef', '$recursiveRef', 'uniqueItems']

const LONGEST_CHECK_MS = 500

/** Lists what does not fit. Making it throws, with code `SCHEMA`, where the schema cannot be used. */
export function outputCheck(schema: Readonly<Record<string, unknown>>, where: string): Validator {
  const copy: Record<string, unknown> = structuredClone(schema)
  const parts = subschemas(copy, where)
  withoutPatterns(parts)
  const validate = compileJsonSchema(copy, where)
  const isQuick = withinSize(copy, SMALL) && !parts.some((part) => LONG.some((keyword) => keyword in part))
  return (value) => (isQuick && withinSize(value, SMALL) ? validate(value) : boundedInTime(() => validate(value)))
}

/** What a pattern would have covered is let pass. */
function withoutPatterns(parts: readonly Record<string, unknown>[]): void {
  const hadNames = parts.some((part) => 'patternProperties' in part)
  for (const part of parts) {
    if (typeof part['pattern'] === 'string') delete part['pattern']
    if ('patternProperties' in part) {
      delete part['patternProperties']
      delete part['additionalProperties']
    }
    if (hadNames) delete part['unevaluatedProperties']
  }
}

function boundedInTime(validate: () => string[]): string[] {
  const watch = (watchdog ??= newWatchdog())
  try {
    return watch(validate)
  } catch (error) {
    const { code } = error as { code?: unknown }
    if (code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return [`takes longer than ${LONGEST_CHECK_MS} ms to check`]
    throw error
  }
}

type Watchdog = (run: () => string[]) => string[]

let watchdog: Watchdog | undefined

/** A script may be given a time limit, whatever it calls. */
function newWatchdog(): Watchdog {
  const { createContext, Script }: typeof vm = createRequire(import.meta.url)('node:vm')
  const context: { run?: () => string[] } = createContext({})
  const script = new Script('run()')
  return (run) => {
    context.run = run
    try {
      return script.runInContext(context, { timeout: LONGEST_CHECK_MS }) as string[]
    } finally {
      delete context.run
    }
  }
}
