// Completion: what a prompt or a resource template suggests for one of its arguments.
import type { Caller, CallSource, ClientInfo } from '../flow/caller.ts'
import { isObject } from '../protocol/json.ts'
import { INVALID_PARAMS, ProtocolError, RallyError } from '../protocol/errors.ts'
import type { Guarded } from './visibility.ts'

/** A list, of which the values that start with the typed text are suggested, or a function that finds values. */
export type CompletionSource = readonly string[] | CompletionFunction

/** Suggests values for an argument of a prompt or a variable of a template. */
export type CompletionFunction = (
  value: string,
  context: CompletionContext,
) => CompletionResult | Promise<CompletionResult>

/** What a completion function can learn beside the typed text. */
export interface CompletionContext extends CallSource {
  /** The arguments that the user has filled in already. */
  readonly arguments: Readonly<Record<string, string>>
}

/** At most 100 values are sent. `hasMore` then tells the client that there are more. */
export type CompletionResult = readonly string[] | { values: readonly string[]; total?: number; hasMore?: boolean }

export type Completers = ReadonlyMap<string, CompletionFunction>

const MOST_VALUES = 100

export function prepareCompleters(
  sources: Readonly<Record<string, CompletionSource>> | undefined,
  names: readonly string[],
  where: string,
): Completers {
  const completers = new Map<string, CompletionFunction>()
  for (const [name, each] of Object.entries(sources ?? {})) {
    if (!names.includes(name)) {
      throw new RallyError(
        'COMPLETION_INVALID',
        `${where}: \`complete\` names "${name}", which does not exist. It has: ${names.join(', ') || 'nothing'}.`,
      )
    }
    completers.set(name, typeof each === 'function' ? each : startingWith(each))
  }
  return completers
}

function startingWith(values: readonly string[]): CompletionFunction {
  return (typed) => values.filter((value) => value.toLowerCase().startsWith(typed.toLowerCase()))
}

/** A prompt or a resource template. */
export interface CompletionTarget extends Guarded {
  readonly arguments: readonly string[]
  readonly completers: Completers
}

/** The suggestions of one response. */
export interface Completion {
  readonly values: readonly string[]
  readonly total?: number
  readonly hasMore: boolean
}

/** Suggests values for one argument of what `params.ref` names. Throws -32602. */
export async function complete(
  target: CompletionTarget | undefined,
  params: Record<string, unknown>,
  source: CallSource,
): Promise<Completion> {
  const { ref, argument, context } = params
  if (target === undefined) throw invalid(isReference(ref) ? 'ref names nothing that is registered' : BAD_REFERENCE)
  if (!isObject(argument) || typeof argument['name'] !== 'string' || typeof argument['value'] !== 'string') {
    throw invalid('argument must have a name and a value, both strings')
  }
  const { name, value } = argument
  if (!target.arguments.includes(name)) throw invalid(`there is no argument "${name.slice(0, 128)}"`)
  const completer = target.completers.get(name)
  const completed = await completer?.(value, new Completing(readContext(context), source))
  return bounded(completed ?? [])
}

/** Reads the source only when the function does. */
class Completing implements CompletionContext {
  readonly arguments: Readonly<Record<string, string>>
  readonly #source: CallSource

  constructor(args: Readonly<Record<string, string>>, source: CallSource) {
    this.arguments = args
    this.#source = source
  }

  get caller(): Caller | undefined {
    return this.#source.caller
  }

  get client(): ClientInfo {
    return this.#source.client
  }

  get meta(): Readonly<Record<string, unknown>> {
    return this.#source.meta
  }
}

/** The name or the URI in a reference that says which of the two it is. A reference with both names nothing. */
export function readReference(ref: unknown): { prompt?: string; uri?: string } {
  if (!isObject(ref)) return {}
  const { type, name, uri } = ref
  if (name !== undefined && uri !== undefined) return {}
  if (type === 'ref/prompt' && typeof name === 'string') return { prompt: name }
  return type === 'ref/resource' && typeof uri === 'string' ? { uri } : {}
}

const BAD_REFERENCE = 'ref must be { type: "ref/prompt", name } or { type: "ref/resource", uri }, not both'

function isReference(ref: unknown): boolean {
  const { prompt, uri } = readReference(ref)
  return (prompt ?? uri) !== undefined
}

function bounded(completed: CompletionResult): Completion {
  const {
    values,
    total,
    hasMore = false,
  } = isList(completed) ? { values: completed, total: completed.length } : completed
  return {
    values: values.slice(0, MOST_VALUES),
    ...(total !== undefined && { total }),
    hasMore: hasMore || values.length > MOST_VALUES,
  }
}

function isList(completed: CompletionResult): completed is readonly string[] {
  return Array.isArray(completed)
}

function readContext(context: unknown): Record<string, string> {
  if (context === undefined || context === null) return {}
  const { arguments: given = {} } = isObject(context) ? context : { arguments: null }
  if (!isObject(given) || !Object.values(given).every((value) => typeof value === 'string')) {
    throw invalid('context.arguments must be an object of strings')
  }
  return given as Record<string, string>
}

function invalid(why: string): ProtocolError {
  return new ProtocolError(INVALID_PARAMS, `Invalid params: ${why}`)
}
