// Middleware: the functions that an author puts around the requests of clients.
//
// 1. A request runs through it once, after its caller, target and state have been checked, and before anything of it runs.
// 2. A middleware sees a failure the same way as the client: as a result that reports it, or as a protocol error.
// 3. Neither the passes of a task nor a repeat that is answered from `once` run through it.
import type { Caller, CallSource, ClientInfo } from '../flow/caller.ts'
import { InputRequired, isInputRequired } from '../flow/by-hand.ts'
import type { PassHost } from '../flow/carrier.ts'
import { flowDigest } from '../flow/derive.ts'
import type { FlowCarrier } from '../flow/observer.ts'
import type { FlowTarget } from '../flow/run.ts'
import { endText, failureText } from '../flow/run.ts'
import { RallyError } from '../protocol/errors.ts'
import { frozenCopy, isObject, isTame } from '../protocol/json.ts'
import type { Result } from '../protocol/revisions/rounds.ts'
import { shown } from '../protocol/text.ts'
import { failServing, targetNameOf } from './failure.ts'
import type { Limits } from './limits.ts'
import { DEEPEST, invalidParams } from './request.ts'
import type { SourceRequest } from './source.ts'
import { RequestSource } from './source.ts'

/** A request, as middleware sees it. */
export interface MiddlewareCall extends CallSource {
  /** The method of the request, such as `tools/call`. */
  readonly method: string
  /** The name of the tool or prompt, or the resource's URI. `undefined` if the method names none. */
  readonly target: string | undefined
  /** The arguments of a tool or prompt, as the client sent them; for other methods the params. A frozen copy. */
  readonly args: Readonly<Record<string, unknown>>
  /** A digest that names the flow: the same in every round. `undefined` if the request has no flow. */
  readonly flow: string | undefined
  /** 0 in the first round. */
  readonly round: number
  /** `undefined` if the request has no flow. */
  readonly carrier: FlowCarrier | undefined
}

/**
 * Runs around every request. Serve it with `next()`, throw to refuse it, or return what a handler could return to answer it.
 *
 * @example
 * app.use(async (call, next) => {
 *   if (call.method === 'tools/call' && isDown()) throw new ToolError('Down for maintenance.')
 *   return next()
 * })
 */
export type Middleware = (call: MiddlewareCall, next: () => Promise<MiddlewareResult>) => unknown

/** How a request was answered. */
export type MiddlewareOutcome =
  | 'complete'
  /** A tool's result that reports a failure. */
  | 'error'
  /** The client was asked something, or is to send the request again. */
  | 'input_required'
  /** The call became a task. */
  | 'task'
  /** The client has cancelled the request, or carries an older call on. Nothing is sent. */
  | 'cancelled'

/** What a request is answered with. */
export interface MiddlewareResult {
  /** How the request ended. */
  readonly outcome: MiddlewareOutcome
  /** The members of the result. Empty if nothing is sent. */
  readonly value: Readonly<Record<string, unknown>>
}

/** The text of a result, the result, or `undefined` if nothing is sent. */
export type Served = string | Result | undefined

/** What middleware uses of an app. */
export interface MiddlewareHost extends PassHost {
  /** In the order in which they were registered. Empty in most apps. */
  readonly middleware: readonly Middleware[]
  readonly limits: Limits
}

/** A round of a flow, before anything of it runs. */
export interface FlowRound<Host, Request> {
  readonly target: FlowTarget<Host, Request>
  readonly request: Request
  readonly flow: { readonly id: string; readonly round: number }
  readonly carrier: FlowCarrier
}

/** Serves a round of a flow, through the middleware. Throws the error to respond with. */
export function aroundRound<
  T extends Served,
  Host extends MiddlewareHost,
  Request extends SourceRequest & { readonly args: Record<string, unknown> },
>(host: Host, round: FlowRound<Host, Request>, serve: () => T | Promise<T>): Promise<T | string> {
  const { target, request, flow, carrier } = round
  const source = new RequestSource(request, host.limits)
  const ended = { host, flow, source }
  const call = new CallView(target.method, request.args, source, { target: target.target, flow, carrier })
  return runAll<T | string>(host.middleware, call, {
    serve,
    answer: (value) => endText(target, { kind: 'done', value }, ended, request),
    fail: (error) => failureText(target, error, ended),
  })
}

/** A request that is no round of a flow. */
export interface PlainRequest {
  readonly method: string
  readonly params: Readonly<Record<string, unknown>> | undefined
}

/** Serves a request that is no round of a flow, through the middleware. `write` makes what is served of a result. */
export function aroundRequest<T extends Served>(
  host: MiddlewareHost,
  request: PlainRequest,
  from: SourceRequest,
  { serve, write }: { serve: () => T | Promise<T>; write: (result: Result) => T },
): Promise<T> {
  const { method, params: { _meta: _, ...args } = {} } = request
  const source = new RequestSource(from, host.limits)
  return runAll<T>(host.middleware, new CallView(method, args, source), {
    serve,
    answer: (value) => {
      if (isObject(value)) return write(value)
      throw invalid(`it answered ${method} with something else than the result object`)
    },
    fail: (error) => failServing(host, error, targetNameOf(request), source.caller),
  })
}

/** What is around the chain. */
interface Ends<T extends Served> {
  /** Serves the request. */
  readonly serve: () => T | Promise<T>
  /** What is served for an answer of a middleware. */
  readonly answer: (value: unknown) => T | Promise<T>
  /** What is served for an error that a middleware threw. Throws the error to respond with. */
  readonly fail: (error: unknown) => T
}

async function runAll<T extends Served>(chain: readonly Middleware[], call: MiddlewareCall, ends: Ends<T>): Promise<T> {
  const served = await runFrom(chain, 0, call, ends)
  return served.served
}

async function runFrom<T extends Served>(
  chain: readonly Middleware[],
  index: number,
  call: MiddlewareCall,
  ends: Ends<T>,
): Promise<ServedResult<T>> {
  const middleware = chain[index]
  if (middleware === undefined) return new ServedResult(await ends.serve())
  let served: Promise<ServedResult<T>> | undefined
  let failure: { readonly error: unknown } | undefined
  const next = (): Promise<ServedResult<T>> => {
    if (served !== undefined) return Promise.reject(invalid('it called next() twice'))
    served = runFrom(chain, index + 1, call, ends)
    // A middleware may give its own answer without waiting for this one.
    served.catch((error: unknown) => {
      failure = { error }
    })
    return served
  }
  try {
    const answer: unknown = await middleware(call, next)
    if (answer instanceof ServedResult) return answer as ServedResult<T>
    if (isInputRequired(answer)) throw invalid('it returned inputRequired(), which only a handler may')
    if (answer !== undefined) return new ServedResult(await ends.answer(answer))
    if (served === undefined) throw invalid('it neither called next() nor returned an answer')
    return await served
  } catch (error) {
    // It came from inside, and is answered as it would be without this middleware.
    if (failure !== undefined && error === failure.error) throw error
    const isInput = error instanceof InputRequired
    return new ServedResult(ends.fail(isInput ? invalid('it threw inputRequired(), which only a handler may') : error))
  }
}

/** Reads what was served only if a middleware does. It gets a copy: a list contains what the registry itself holds. */
class ServedResult<T extends Served> implements MiddlewareResult {
  readonly served: T
  #value: Result | undefined

  constructor(served: T) {
    this.served = served
  }

  get outcome(): MiddlewareOutcome {
    if (this.served === undefined) return 'cancelled'
    const { resultType, isError } = this.value
    if (resultType === 'input_required' || resultType === 'task') return resultType
    return isError === true ? 'error' : 'complete'
  }

  get value(): Result {
    const served: Served = this.served
    return (this.#value ??= JSON.parse(typeof served === 'string' ? served : JSON.stringify(served ?? {})) as Result)
  }
}

/** The parts of a call that only a round of a flow has. */
interface FlowPart {
  readonly target: string
  readonly flow: { readonly id: string; readonly round: number }
  readonly carrier: FlowCarrier
}

class CallView implements MiddlewareCall {
  readonly method: string
  readonly target: string | undefined
  readonly round: number
  readonly carrier: FlowCarrier | undefined
  readonly #given: Readonly<Record<string, unknown>>
  readonly #source: CallSource
  readonly #flow: { readonly id: string } | undefined
  #args: Readonly<Record<string, unknown>> | undefined

  constructor(method: string, given: Readonly<Record<string, unknown>>, source: CallSource, of?: FlowPart) {
    this.method = method
    this.target = of?.target
    this.round = of?.flow.round ?? 0
    this.carrier = of?.carrier
    this.#given = given
    this.#source = source
    this.#flow = of?.flow
  }

  get args(): Readonly<Record<string, unknown>> {
    if (this.#args !== undefined) return this.#args
    if (!isTame(this.#given, DEEPEST)) throw invalidParams(`params must be nested at most ${DEEPEST} levels deep`)
    // The handler may change its arguments, and a middleware must not.
    return (this.#args = frozenCopy(this.#given))
  }

  get flow(): string | undefined {
    return this.#flow && flowDigest(this.#flow.id)
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

function invalid(why: string): RallyError {
  return new RallyError('MIDDLEWARE_INVALID', `A middleware is not valid: ${why}. Return next(), or an answer.`)
}

/** Throws if it is not a function. */
export function checkMiddleware(middleware: unknown): asserts middleware is Middleware {
  if (typeof middleware === 'function') return
  throw new RallyError(
    'MIDDLEWARE_INVALID',
    `app.use() takes a function, got ${shown(middleware)}. Write app.use(async (call, next) => next()).`,
  )
}
