// Methods of an app's own, such as those of an extension. They take one round: a client that does not know them could not answer.
import type { Caller, CallSource, ClientInfo } from '../flow/caller.ts'
import { MAX_TIMER_MS } from '../flow/scheduler.ts'
import type { Cancel } from '../protocol/cancel.ts'
import { RallyError } from '../protocol/errors.ts'
import { assertJson, isObject, isTame } from '../protocol/json.ts'
import { isOwnMethod } from '../protocol/own-methods.ts'
import { shown } from '../protocol/text.ts'
import type { NoArguments, Output, Schema } from '../schema/standard.ts'
import { jsonSchemaOf } from '../schema/standard.ts'
import type { Check } from '../schema/validator.ts'
import { toCheck } from '../schema/validator.ts'
import type { ServingHost } from './failure.ts'
import { failServing } from './failure.ts'
import type { HandlerOptions } from './handler.ts'
import { checkNone, prepareHandler } from './handler.ts'
import { DEEPEST, invalidParams } from './request.ts'
import type { Guarded } from './visibility.ts'

/** Options of `app.method()`. */
export interface MethodOptions<P extends Schema> extends Pick<
  HandlerOptions<{}, {}>,
  'scopes' | 'visible' | 'timeoutMs'
> {
  /** The schema of the params, without `_meta`. Default: no params. */
  params?: P
}

/** What the handler of a method can learn about its request. */
export interface MethodContext extends CallSource {
  /** Aborted when the client cancels the request or disconnects, and when the time limit passes. */
  readonly signal: AbortSignal
}

/** Returns the result: a JSON object. Throw `ToolError` or `ProtocolError` to tell the client what went wrong. */
export type MethodHandler<P extends Schema> = (
  params: Output<P>,
  context: MethodContext,
) => MethodResult | Promise<MethodResult>

/** What the handler of a method of your own returns: a JSON object. A list or a promise is a type error. */
export type MethodResult = object & { readonly [Symbol.iterator]?: never; readonly then?: never }

export interface RegisteredMethod extends Guarded {
  readonly kind: 'method'
  readonly name: string
  readonly timeoutMs: number | undefined
  readonly check: Check
  readonly run: (params: unknown, context: MethodContext) => unknown
}

export function registerMethod<P extends Schema = NoArguments>(
  name: string,
  options: MethodOptions<P>,
  handler: MethodHandler<P>,
): RegisteredMethod {
  if (!isOwnMethod(name)) {
    throw new RallyError(
      'METHOD_INVALID',
      `The method ${shown(name)} is not valid. Use a name of your own with a slash, such as com.example/thing.`,
    )
  }
  if (!isObject(options) || typeof handler !== 'function') {
    throw new RallyError(
      'METHOD_INVALID',
      `Method ${name} needs options and a handler. Write app.method(name, options, handler).`,
    )
  }
  const { params }: MethodOptions<P> = options
  const { scopes, visible, timeoutMs } = prepareHandler(`Method ${name}`, options, handler)
  return {
    kind: 'method',
    name,
    scopes,
    visible,
    timeoutMs,
    check: params === undefined ? checkNone : checkOf(params, `The params of method ${name}`),
    run: handler as RegisteredMethod['run'],
  }
}

function checkOf(params: Schema, where: string): Check {
  const check = toCheck(params, where)
  if (typesOf(params).includes('object')) return check
  throw new RallyError('SCHEMA_INVALID', `${where} must be an object schema, because params have names.`)
}

/** The JSON types that a schema accepts. A schema need not say that: it has no JSON Schema, or types that JSON Schema lacks. */
function typesOf(schema: Schema): unknown[] {
  try {
    const { type = 'object' } = jsonSchemaOf(schema, 'input')
    return [type].flat()
  } catch {
    return ['object']
  }
}

/** What an app shares with its methods. */
export interface MethodHost extends ServingHost {
  readonly timeoutMs: number
}

/** One request for a method of the app's own. */
export interface OwnRequest {
  readonly method: RegisteredMethod
  readonly params: Record<string, unknown> | undefined
  readonly source: CallSource
  readonly cancel: Cancel | undefined
}

/** `undefined` when the client has cancelled. Throws what to answer instead of a result. */
export async function serveOwn(app: MethodHost, request: OwnRequest): Promise<MethodResult | undefined> {
  const { method, source, cancel } = request
  try {
    const params = await checkedParams(request)
    const stop = new AbortController()
    cancel?.listen(() => stop.abort())
    const result = await withinTime(method, app, stop, () => method.run(params, new OwnContext(source, stop.signal)))
    if (cancel?.cancelled === true) return undefined
    return checkedResult(method, result)
  } catch (error) {
    if (cancel?.cancelled === true) return undefined
    return failServing(app, error, { method: method.name, target: method.name }, source.caller)
  } finally {
    cancel?.listen(undefined)
  }
}

async function checkedParams({ method, params = {} }: OwnRequest): Promise<unknown> {
  const { _meta, ...given } = params
  if (!isTame(given, DEEPEST)) {
    throw invalidParams(`params must be nested at most ${DEEPEST} levels deep, and their numbers finite`)
  }
  const checked = await method.check(given)
  if ('value' in checked) return checked.value
  throw invalidParams(`Invalid params for ${method.name}: ${checked.issues.join('; ')}`)
}

/** Rejects when the time limit passes or the client cancels, also if the handler ignores its signal. */
async function withinTime<T>(
  { name, timeoutMs }: RegisteredMethod,
  app: MethodHost,
  stop: AbortController,
  run: () => T,
): Promise<Awaited<T>> {
  const limitMs = timeoutMs ?? app.timeoutMs
  let timer: NodeJS.Timeout | undefined
  const stopped = new Promise<never>((_resolve, reject) => {
    stop.signal.addEventListener('abort', () => reject(stop.signal.reason as Error), { once: true })
    timer = setTimeout(() => stop.abort(tooSlow(name, limitMs)), Math.min(limitMs, MAX_TIMER_MS))
  })
  try {
    return await Promise.race([run(), stopped])
  } finally {
    clearTimeout(timer)
  }
}

function tooSlow(name: string, limitMs: number): RallyError {
  return new RallyError('TIME_LIMIT', `Method ${name} took longer than ${limitMs} ms. Raise its \`timeoutMs\`.`)
}

function checkedResult({ name }: RegisteredMethod, result: unknown): MethodResult {
  assertJson(result, `The result of method ${name}`)
  if (isObject(result)) return result
  throw new RallyError('METHOD_INVALID', `Method ${name}: the handler must return an object, got ${shown(result)}.`)
}

/** Reads the source only when the handler does. */
class OwnContext implements MethodContext {
  readonly signal: AbortSignal
  readonly #source: CallSource

  constructor(source: CallSource, signal: AbortSignal) {
    this.#source = source
    this.signal = signal
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
