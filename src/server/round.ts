// One round of a flow that the client carries: opens the state, runs a pass, and answers with a result or a new state.
import type { Answers } from '../flow/answering.ts'
import { holdAnswers } from '../flow/answering.ts'
import type { Caller, CallSource } from '../flow/caller.ts'
import type { Carrier, Ending, Log, PassHost, Progress, Suspension, WaitLimits } from '../flow/carrier.ts'
import { noTask } from '../flow/errors.ts'
import type { FlowState } from '../flow/flow-state.ts'
import { emptyState, readFlowState } from '../flow/flow-state.ts'
import { Journal } from '../flow/journal.ts'
import type { Capability } from '../flow/question.ts'
import type { FlowTarget, SavedFlow } from '../flow/run.ts'
import { endText, resumable, runTarget, VersionChanged } from '../flow/run.ts'
import type { Interruptible, Underway } from '../flow/underway.ts'
import type { Cancel } from '../protocol/cancel.ts'
import { DEFERRED_VERSION, inputRequiredText, META_DEFERRED } from '../protocol/revisions/2026-07-28.ts'
import { digest } from '../seal/canonical.ts'
import type { Claims } from '../seal/claims.ts'
import { InvalidState } from '../seal/errors.ts'
import type { Binding } from '../seal/envelope.ts'
import type { Seal } from '../seal/seal.ts'
import type { OnceStore } from '../store/once.ts'
import type { Usages } from '../store/usage.ts'
import { bindingOf, useRound } from './single-use.ts'
import { hasCapability } from './capabilities.ts'
import { withServerMeta } from './content.ts'
import type { Handover } from './handover.ts'
import type { Limits } from './limits.ts'
import type { Middleware } from './middleware.ts'
import { aroundRound } from './middleware.ts'
import type { RequestInfo } from './request.ts'
import { RoundFlow } from './round-flow.ts'
import { RequestSource } from './source.ts'
import type { TaskMode, TaskStart, Tasks } from './tasks.ts'

/** What a round uses of its app. */
export interface RoundServices extends PassHost {
  readonly limits: Limits
  readonly seal: Seal
  readonly serverMeta: string
  readonly timeoutMs: number
  /** How long a flow may wait that the client carries. */
  readonly waiting: WaitLimits
  readonly handover: Handover
  readonly middleware: readonly Middleware[]
  /** Makes every state single-use. */
  readonly once: OnceStore | undefined
  /** How much the records of each caller take in `once`, if that can tell. */
  readonly recordUsages: Usages | undefined
  /** Carries the flows that have become tasks. */
  readonly tasks: Tasks | undefined
  /** Called when a state was minted under a key that no other process has. */
  mintedEphemeral(overHttp: boolean): void
}

/** What may take several rounds, whatever its method. */
export interface Target extends FlowTarget<RoundServices, RoundRequest> {
  /** When a call becomes a task. Absent if it never may. */
  readonly task?: TaskMode | 'detach'
}

export interface RoundRequest {
  readonly info: RequestInfo
  /** As the client sent them. The state is bound to them. */
  readonly args: Record<string, unknown>
  readonly answers: Answers | undefined
  readonly state: unknown
  /** The caller, as the host authenticated it. */
  readonly caller: Caller | undefined
  /** The `_meta` of the request. */
  readonly meta: Readonly<Record<string, unknown>> | undefined
  readonly cancel: Cancel | undefined
  readonly progress: Progress | undefined
  readonly log: Log | undefined
  readonly overHttp: boolean
}

/** The text of the round's result, final or not; `undefined` if the call was cancelled. */
export function serveRound(host: RoundServices, target: Target, request: RoundRequest): Promise<string | undefined> {
  const { state } = request
  if (state === undefined) return startFlow(host, target, request)
  const resumed = resume(host, target, request)
  if (resumed instanceof Promise) return resumed.then((later) => continueFlow(host, target, request, later))
  return continueFlow(host, target, request, resumed)
}

/** A task of which nothing has run yet. */
export function newTask(host: RoundServices, target: Target, request: RoundRequest): TaskStart {
  const flow = new RoundFlow(
    request.info,
    undefined,
    host.now,
    keyedId(host, request, () => bindingOf(target, request)),
  )
  const { version } = target
  const flowState = emptyState()
  host.observers?.sealTrace(flowState)
  const claims = { ...flow.next({ version, flowState, journal: Journal.empty() }), round: 0 }
  const { args, info, answers } = request
  return { tool: target.target, args, source: new RequestSource(request, host.limits), info, claims, answers }
}

/** Reads what a state brings back for this version of the handler. Throws if the handler cannot resume from it. */
export function readClaims(host: RoundServices, target: Target, claims: Claims): SavedFlow {
  return resumable(target, readSaved(host, target, claims))
}

function readSaved({ logger }: RoundServices, { target }: Target, claims: Claims): SavedFlow {
  try {
    const { version } = claims
    return { version, journal: Journal.read(claims.journal), flowState: readFlowState(claims.carry) }
  } catch (cause) {
    logger.error(`"${target}": a requestState opened, but its content cannot be read.`, { cause })
    throw new InvalidState(cause)
  }
}

interface ResumedFlow {
  readonly claims: Claims
  readonly saved: SavedFlow
  /** True if this instance has another version of the handler than the one that recorded the flow's steps. */
  readonly isElsewhere: boolean
}

/** A repeat of the first round gets the response of the first attempt, if the app has a record of it. */
function startFlow(host: RoundServices, target: Target, request: RoundRequest): Promise<string | undefined> {
  const { once } = host
  // Everybody without a principal would share the records.
  if (once === undefined || request.caller === undefined) return beginFlow(host, target, request)
  const newId = keyedId(host, request, () => bindingOf(target, request))
  if (newId === undefined) return beginFlow(host, target, request)
  const used = { what: 'idempotency key', host, target, request } as const
  return useRound(once, `call:${digest(newId())}`, used, () => beginFlow(host, target, request))
}

/** Makes the id of a flow whose first round has an idempotency key. Such a round may be repeated: its steps and tasks keep their ids. */
function keyedId({ seal }: RoundServices, { info }: RoundRequest, bound: () => Binding): (() => string) | undefined {
  const { idempotencyKey } = info
  const { keyedFlowId } = seal
  if (idempotencyKey === undefined || keyedFlowId === undefined) return undefined
  return () => keyedFlowId(idempotencyKey, bound())
}

function beginFlow(host: RoundServices, target: Target, request: RoundRequest): Promise<string | undefined> {
  const { task } = target
  if (task === 'always' || task === 'optional') {
    const { tasks } = host
    if (hasCapability(request.info.capabilities, 'tasks') && tasks !== undefined) {
      const start = newTask(host, target, request)
      if (host.middleware.length === 0) return tasks.createText(start)
      const flow = { id: start.claims.flowId, round: 0 }
      return aroundRound(host, { target, request, flow, carrier: 'store' }, () => tasks.createText(start))
    }
    if (task === 'always') throw noTask()
  }
  return runRound(host, target, request, new Round(host, target, request, undefined))
}

function runRound(
  host: RoundServices,
  target: Target,
  request: RoundRequest,
  round: Round,
): Promise<string | undefined> {
  if (host.middleware.length === 0) return round.run()
  return aroundRound(host, { target, request, flow: round.flow, carrier: 'client' }, () => round.run())
}

function resume(host: RoundServices, target: Target, request: RoundRequest): ResumedFlow | Promise<ResumedFlow> {
  const claims = host.seal.open(request.state, bindingOf(target, request))
  if (claims instanceof Promise) return claims.then((later) => readResumed(host, target, later))
  return readResumed(host, target, claims)
}

function readResumed(host: RoundServices, target: Target, claims: Claims): ResumedFlow {
  const saved = readSaved(host, target, claims)
  try {
    return { claims, saved: resumable(target, saved), isElsewhere: false }
  } catch (error) {
    if (error instanceof VersionChanged && (claims.versionDeferrals ?? 0) < MOST_VERSION_DEFERRALS) {
      return { claims, saved, isElsewhere: true }
    }
    if (error instanceof VersionChanged) {
      const details = { method: target.method, target: target.target, was: saved.version, is: target.version }
      host.logger.warn('A call was refused: no instance with its version of the handler was found.', details)
    }
    throw error
  }
}

function continueFlow(
  host: RoundServices,
  target: Target,
  request: RoundRequest,
  resumed: ResumedFlow,
): Promise<string | undefined> {
  const round = new Round(host, target, request, resumed)
  const { once } = host
  if (once === undefined) return runRound(host, target, request, round)
  // What is used up is the flow's round, so another token of the same round is refused too.
  const key = `state:${digest(`${round.flow.id}\n${round.flow.round}`)}`
  return useRound(once, key, { what: 'requestState', host, target, request }, () =>
    runRound(host, target, request, round),
  )
}

/** The client as carrier: it gets a sealed state, and sends it back with its answers. */
class Round implements Carrier<string | undefined> {
  readonly kind = 'client'
  readonly host: RoundServices
  readonly flow: RoundFlow
  readonly journal: Journal
  readonly flowState: FlowState
  readonly #target: Target
  readonly #request: RoundRequest
  readonly #resumed: ResumedFlow | undefined
  #binding: Binding | undefined

  constructor(host: RoundServices, target: Target, request: RoundRequest, resumed: ResumedFlow | undefined) {
    this.host = host
    this.flow = new RoundFlow(
      request.info,
      resumed?.claims,
      host.now,
      keyedId(host, request, () => this.#bound),
    )
    this.journal = resumed?.saved.journal ?? Journal.empty()
    this.flowState = resumed?.saved.flowState ?? emptyState()
    this.#target = target
    this.#request = request
    this.#resumed = resumed
  }

  run(): Promise<string | undefined> {
    if (this.#resumed?.isElsewhere === true) return this.#sendElsewhere(this.#resumed.saved)
    return runTarget(this.#target, this.#request.args, this)
  }

  get answers(): Answers | undefined {
    return this.#request.answers
  }

  get source(): CallSource {
    return new RequestSource(this.#request, this.host.limits)
  }

  get maxJournalBytes(): number {
    return this.host.seal.maxPlaintextBytes
  }

  get timeoutMs(): number {
    return this.host.timeoutMs
  }

  get waiting(): WaitLimits {
    return this.host.waiting
  }

  get underway(): Underway<Interruptible> {
    return this.host.handover.underway
  }

  get cancel(): Cancel | undefined {
    return this.#request.cancel
  }

  get progress(): Progress | undefined {
    return this.#request.progress
  }

  get log(): Log | undefined {
    return this.#request.log
  }

  get hasStore(): boolean {
    return this.host.tasks !== undefined
  }

  get mayDetach(): boolean {
    const { task = 'never' } = this.#target
    return this.host.tasks !== undefined && task !== 'never' && this.can('tasks')
  }

  can(capability: Capability): boolean {
    return hasCapability(this.#request.info.capabilities, capability)
  }

  wantsHandover(): boolean {
    return this.host.handover.wanted(this.flow.round, this.flow.deferrals)
  }

  ended(outcome: Ending): string | Promise<string> {
    return endText(this.#target, outcome, this, this.#request)
  }

  cancelled(): undefined {
    return undefined
  }

  suspended(outcome: Suspension): string | Promise<string> {
    const { host } = this
    const { journal, flowState, kind } = outcome
    const { version } = this.#target
    const claims = this.flow.next({ version, flowState, journal }, kind === 'deferred' ? 'load' : undefined)
    if (kind === 'detached') return this.#createTask(claims)
    const token = this.#mint(claims)
    if (typeof token === 'string') return interimText(outcome, token, host.serverMeta)
    return token.then((later) => interimText(outcome, later, host.serverMeta))
  }

  /**
   * For a flow whose version this instance does not have: asks for a retry, which may reach an instance that has it. The new
   * state holds the answers of this round, so that they need not be sent or given again.
   */
  async #sendElsewhere(saved: SavedFlow): Promise<string> {
    const flowState = holdAnswers(saved.flowState, this.answers, this.host.now())
    const token = await this.#mint(this.flow.next({ ...saved, flowState }, 'version'))
    const meta = withServerMeta({ [META_DEFERRED]: DEFERRED_VERSION }, this.host.serverMeta)
    return inputRequiredText(undefined, token, meta)
  }

  #mint(claims: Claims): string | Promise<string> {
    const { host } = this
    const { seal } = host
    if (seal.ephemeral) host.mintedEphemeral(this.#request.overHttp)
    return seal.mint(claims, this.#bound, () => this.journal.largest(3))
  }

  /** What the state and an id made of an idempotency key are bound to. */
  get #bound(): Binding {
    return (this.#binding ??= bindingOf(this.#target, this.#request))
  }

  #createTask(claims: Claims): Promise<string> {
    if (this.host.tasks === undefined) throw noTask()
    const { args, info } = this.#request
    return this.host.tasks.createText({
      tool: this.#target.target,
      args,
      source: this.source,
      info,
      claims,
      answers: undefined,
    })
  }
}

/** How many instances in a row may have another version. Most clients give up after ten rounds. */
const MOST_VERSION_DEFERRALS = 5

function interimText(outcome: Suspension, token: string, serverMeta: string): string {
  return inputRequiredText(outcome.kind === 'asks' ? outcome.questions : undefined, token, serverMeta)
}
