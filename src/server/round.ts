// One round of a flow that the client carries: opens the state, runs a pass, and answers with a result or a new state.
import type { Answers } from '../flow/answering.ts'
import type { Cancel } from '../protocol/cancel.ts'
import type { FlowState } from '../flow/flow-state.ts'
import { keepAnswers, emptyState, readFlowState } from '../flow/flow-state.ts'
import { noTask } from '../flow/errors.ts'
import type { Io } from '../flow/io.ts'
import { startPass } from '../flow/io.ts'
import { Journal } from '../flow/journal.ts'
import type { OnceStore } from '../store/once.ts'
import { useOnce } from '../store/once.ts'
import type { Outcome, Log, PassInput, Progress } from '../flow/carrier.ts'
import { Pass } from '../flow/pass.ts'
import type { Form } from '../flow/question.ts'
import { INVALID_PARAMS, ProtocolError } from '../protocol/errors.ts'
import type { Logger } from '../protocol/logger.ts'
import { inputRequiredText } from '../protocol/revisions/2026-07-28.ts'
import { canonical, digest } from '../seal/canonical.ts'
import type { Claims } from '../seal/claims.ts'
import type { Binding } from '../seal/envelope.ts'
import { InvalidState } from '../seal/errors.ts'
import type { Seal } from '../seal/seal.ts'
import { hasCapability } from './capabilities.ts'
import type { Handover } from './handover.ts'
import type { RequestInfo } from './request.ts'
import { RoundFlow } from './round-flow.ts'
import type { TaskMode, Tasks } from './tasks.ts'

/** What serving a round needs of its app. */
export interface RoundHost {
  readonly seal: Seal
  readonly logger: Logger
  readonly serverMeta: string
  readonly timeoutMs: number
  readonly strict: boolean
  readonly now: () => number
  readonly handover: Handover
  /** Makes every state single-use. */
  readonly once: OnceStore | undefined
  /** Carries flows that have become tasks. */
  readonly tasks: Tasks | undefined
  /** A state was minted under a key that no other process has. */
  mintedEphemeral(overHttp: boolean): void
}

/** What may take several rounds, whatever its method. */
export interface Target {
  readonly method: string
  /** The name of the tool or prompt, or the resource's URI. */
  readonly target: string
  readonly version: string | undefined
  readonly timeoutMs: number | undefined
  readonly forms: ReadonlyMap<string, Form>
  /** When it becomes a task; absent where it never may. */
  readonly task?: TaskMode | 'detach'
  readonly run: (args: unknown, io: Io) => unknown
  /** The text of the result that the handler's value comes to. */
  readonly resultText: (value: unknown, host: RoundHost, request: RoundRequest) => string | Promise<string>
  /** The text of a result that tells a failure; where there is none, throws what to tell instead. */
  readonly failureText: (error: unknown, host: RoundHost) => string
}

export interface RoundRequest {
  readonly info: RequestInfo
  /** As received; bound to the state. */
  readonly args: Record<string, unknown>
  readonly answers: Answers | undefined
  readonly state: unknown
  readonly principal: string | undefined
  readonly cancel: Cancel | undefined
  readonly progress: Progress | undefined
  readonly log: Log | undefined
  readonly overHttp: boolean
}

/** Gives the text of the round's result, final or not; nothing where nobody waits for it. */
export function serveRound(host: RoundHost, carried: Target, request: RoundRequest): Promise<string | undefined> {
  const { state } = request
  if (state === undefined || state === null) {
    const { task } = carried
    const { info } = request
    if (task !== 'always' && task !== 'optional') return takeRound(host, carried, request, undefined)
    if (hasCapability(info.capabilities, 'tasks') && host.tasks !== undefined) return beginTask(host, carried, request)
    if (task === 'always') throw noTask()
    return takeRound(host, carried, request, undefined)
  }
  const resumed = resume(host, carried, request)
  if (resumed instanceof Promise) return resumed.then((later) => goOn(host, carried, request, later))
  return goOn(host, carried, request, resumed)
}

function goOn(host: RoundHost, carried: Target, request: RoundRequest, resumed: Resumed): Promise<string | undefined> {
  const { once } = host
  if (once === undefined) return takeRound(host, carried, request, resumed)
  return roundOnce(host, once, carried, request, resumed)
}

/** Makes a task of a flow before anything of it has run. */
export function beginTask(host: RoundHost, carried: Target, request: RoundRequest): Promise<string> {
  if (host.tasks === undefined) throw noTask()
  const flow = new RoundFlow(request.info, undefined, host.now)
  const claims = { ...flow.next(carried.version, emptyState(), Journal.empty(), false), round: 0 }
  const { args, principal, info, answers } = request
  return host.tasks.createText({ tool: carried.target, args, principal, info, claims, answers })
}

/**
 * The first use of a state wins. The same round again, its response lost, gets the response; any other is refused. What
 * is used up is the round of the flow, however its token is spelled.
 */
async function roundOnce(
  host: RoundHost,
  store: OnceStore,
  carried: Target,
  request: RoundRequest,
  resumed: Resumed,
): Promise<string | undefined> {
  const { flowId, round } = resumed.claims
  const { answers = {}, cancel } = request
  const options = {
    note: digest(canonicalOf(answers, 'inputResponses')),
    keepMs: host.seal.lifetimeMs,
    gaveUp: () => cancel?.cancelled ?? false,
  }
  const key = `state:${digest(`${flowId}\n${round}`)}`
  const used = await useOnce(store, key, options, () => takeRound(host, carried, request, resumed))
  if (used !== 'refused') return used?.record
  const reason = 'it has been used with other answers'
  host.logger.warn('A requestState was refused.', { reason, method: carried.method, target: carried.target })
  throw new InvalidState(reason)
}

/** One promise for the whole round: this is the way that every call takes. */
function takeRound(
  host: RoundHost,
  carried: Target,
  request: RoundRequest,
  resumed: Resumed | undefined,
): Promise<string | undefined> {
  const flow = new RoundFlow(request.info, resumed?.claims, host.now)
  const { handover } = host
  const input: PassInput = {
    flow,
    journal: resumed?.journal ?? Journal.empty(),
    flowState: resumed?.carry ?? emptyState(),
    answers: request.answers,
    forms: carried.forms,
    can: (capability) => hasCapability(request.info.capabilities, capability),
    limits: { journalBytes: host.seal.maxPlaintextBytes, passMs: carried.timeoutMs ?? host.timeoutMs },
    logger: host.logger,
    progress: request.progress,
    log: request.log,
    mayDetach: mayDetach(host, carried, request),
    wantsHandover: () => handover.wanted(flow.round, flow.deferrals),
    underway: handover.underway,
    cancel: request.cancel,
    strict: host.strict,
    now: host.now,
  }
  return new Promise((resolve, reject) => {
    const finish = (outcome: Outcome): void => {
      try {
        resolve(conclude(host, carried, request, flow, outcome))
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)))
      }
    }
    startPass(new Pass(input, finish), (io) => carried.run(request.args, io))
  })
}

function conclude(
  host: RoundHost,
  carried: Target,
  request: RoundRequest,
  flow: RoundFlow,
  outcome: Outcome,
): string | undefined | Promise<string> {
  switch (outcome.kind) {
    case 'done':
      return finalText(host, carried, request, outcome.value)
    case 'cancelled':
      return undefined
    case 'failed':
      return carried.failureText(outcome.error, host)
    case 'asks':
    case 'deferred':
      return suspend(host, carried, request, flow, outcome)
    case 'detached':
      return detach(host, carried, request, flow, outcome)
  }
}

function mayDetach({ tasks }: RoundHost, { task = 'never' }: Target, { info }: RoundRequest): boolean {
  return tasks !== undefined && task !== 'never' && hasCapability(info.capabilities, 'tasks')
}

function detach(
  host: RoundHost,
  carried: Target,
  request: RoundRequest,
  flow: RoundFlow,
  { journal, flowState }: Outcome & { kind: 'detached' },
): Promise<string> {
  if (host.tasks === undefined) throw noTask()
  const { args, principal, info } = request
  const claims = flow.next(carried.version, flowState, journal, false)
  return host.tasks.createText({ tool: carried.target, args, principal, info, claims, answers: undefined })
}

/** A value that cannot be told, because it is no JSON or does not fit, is a failure like any other. */
function finalText(host: RoundHost, carried: Target, request: RoundRequest, value: unknown): string | Promise<string> {
  const failed = (error: unknown): string => carried.failureText(error, host)
  try {
    const text = carried.resultText(value, host, request)
    return typeof text === 'string' ? text : text.catch(failed)
  } catch (error) {
    return failed(error)
  }
}

function suspend(
  host: RoundHost,
  carried: Target,
  request: RoundRequest,
  flow: RoundFlow,
  outcome: Outcome & { kind: 'asks' | 'deferred' },
): string | Promise<string> {
  const { journal, flowState } = outcome
  const { seal, serverMeta } = host
  const claims = flow.next(carried.version, flowState, journal, outcome.kind === 'deferred')
  const token = seal.mint(claims, bindingOf(carried, request), () => journal.largest(3))
  if (seal.ephemeral) host.mintedEphemeral(request.overHttp)
  if (typeof token === 'string') return interimText(outcome, token, serverMeta)
  return token.then((later) => interimText(outcome, later, serverMeta))
}

interface Resumed {
  claims: Claims
  journal: Journal
  carry: FlowState
}

function resume(host: RoundHost, carried: Target, request: RoundRequest): Resumed | Promise<Resumed> {
  const claims = host.seal.open(request.state, bindingOf(carried, request))
  if (claims instanceof Promise) return claims.then((later) => readClaims(host, carried, later))
  return readClaims(host, carried, claims)
}

/** What a state brings back for this version of the handler. Throws where it cannot go on from there. */
export function readClaims(host: RoundHost, carried: Target, claims: Claims): Resumed {
  let journal: Journal
  let carry: FlowState
  try {
    journal = Journal.read(claims.journal)
    carry = readFlowState(claims.carry)
  } catch (cause) {
    host.logger.error('A requestState opened, but what it holds cannot be read.', { cause })
    throw new InvalidState(cause)
  }
  if (claims.version === carried.version) return { claims, journal, carry }
  if (journal.hasEffects()) throw versionChanged(carried, claims.version)
  return { claims, journal: Journal.empty(), carry: keepAnswers(journal, carry) }
}

export function versionChanged({ target, version }: Target, was: string | undefined): ProtocolError {
  return new ProtocolError(
    INVALID_PARAMS,
    `This call of "${target}" was begun under version ${was ?? '(none)'} and has done steps that version ${version ?? '(none)'} cannot go on from. Start it again.`,
    { code: 'VERSION_CHANGED' },
  )
}

const LONGEST_PLAIN = 64

function bindingOf({ method, target }: Target, { args, principal }: RoundRequest): Binding {
  const text = canonicalOf(args, 'arguments')
  // Short arguments stand for themselves: no digest begins with a brace.
  return { method, target, argumentsDigest: text.length > LONGEST_PLAIN ? digest(text) : text, principal }
}

function canonicalOf(value: unknown, what: string): string {
  try {
    return canonical(value)
  } catch (cause) {
    // A number that JSON can write and JavaScript cannot hold, such as 1e999.
    throw new ProtocolError(INVALID_PARAMS, `Invalid ${what}: ${cause instanceof Error ? cause.message : ''}`)
  }
}

function interimText(outcome: Outcome & { kind: 'asks' | 'deferred' }, token: string, serverMeta: string): string {
  return inputRequiredText(outcome.kind === 'asks' ? outcome.questions : undefined, token, serverMeta)
}
