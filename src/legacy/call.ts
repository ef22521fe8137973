// One call of an older client. Each question of a pass is a request to the client.
//
// The connection is the carrier: the passes run in memory on this instance. If the client carries the call itself (SEP-1685), a
// question ends the call here, and its answer resumes it anywhere. The journal goes through its text between two passes, as with
// every other carrier.
import { randomBytes } from 'node:crypto'
import type { Answers } from '../flow/answering.ts'
import type { Carrier, Ending, Suspension } from '../flow/carrier.ts'
import { derivedUuid } from '../flow/derive.ts'
import type { FlowState } from '../flow/flow-state.ts'
import { emptyState, readFlowState, writeFlowState } from '../flow/flow-state.ts'
import { Journal } from '../flow/journal.ts'
import type { Begun, WaitEnd } from '../flow/observer.ts'
import type { Capability } from '../flow/question.ts'
import type { EndedFlow } from '../flow/run.ts'
import { endText, failureText, runTarget } from '../flow/run.ts'
import { Cancel } from '../protocol/cancel.ts'
import { RallyError } from '../protocol/errors.ts'
import type { InputRequest } from '../protocol/messages.ts'
import type { OlderRevision } from '../protocol/revisions/older.ts'
import { hasCapability } from '../server/capabilities.ts'
import type { AppServices } from '../server/context.ts'
import type { RoundRequest, Target } from '../server/round.ts'
import { RequestSource } from '../server/source.ts'
import type { LegacyHost, Outlet } from './host.ts'
import type { Question } from './questions.ts'
import { askAll, writeQuestions } from './questions.ts'
import type { Session, Stoppable } from './session.ts'

/** As many as most clients of 2026-07-28 allow. A handler that asks through `io` has no such limit, only `callMs`. */
const MOST_ROUNDS_BY_HAND = 10

/** A shorter wait costs less than another pass. */
const RELEASE_FROM_MS = 1_000

/** Where the next pass of a call starts. */
export interface ResumePoint {
  readonly flowId: string
  readonly startedAt: number
  /** The number of the next pass, from 0. */
  readonly round: number
  readonly journal: Journal
  readonly flowState: FlowState
  /** The answers of the round before; `undefined` in the first pass. */
  readonly answers: Answers | undefined
  /** When each of them was received. Default: all with the request that resumes the call. */
  readonly receivedAt?: ReadonlyMap<string, number>
  /** The keys of the questions of that round that sent the user to a page. */
  readonly visits: readonly string[]
}

/** Sends the questions to a client that carries the call. Once they are answered, the call resumes at the point. */
export type SuspendCall = (asked: readonly Question[], point: ResumePoint) => Promise<void>

export function startingPoint(now: number): ResumePoint {
  return {
    flowId: randomBytes(16).toString('base64url'),
    startedAt: now,
    round: 0,
    journal: Journal.empty(),
    flowState: emptyState(),
    answers: undefined,
    visits: [],
  }
}

/** The times of one round of questions. */
interface AskTimes {
  readonly startedAt: number
  readonly dueAt: number | undefined
  readonly hasDeadline: (key: string) => boolean
  /** Filled as the answers come. */
  readonly receivedAt: Map<string, number>
}

/** What one pass leaves to do: nothing, because the call is over, or to ask and run the next pass. */
type PassResult = { readonly kind: 'over'; readonly text: string | undefined } | Suspension

export class Call implements Stoppable {
  readonly cancel = new Cancel()
  readonly segment: number
  readonly #host: LegacyHost
  readonly #session: Session
  /** As the call began: another client may join the session meanwhile. */
  readonly #capabilities: number
  readonly #revision: OlderRevision
  readonly #outlet: Outlet
  #interrupted = false
  /** The wait for answers, as observers know it. */
  #wait: Begun<WaitEnd> | undefined

  constructor(host: LegacyHost, session: Session, outlet: Outlet, segment = 0) {
    this.#host = host
    this.#session = session
    this.#capabilities = session.capabilities
    this.#revision = session.revision
    this.#outlet = outlet
    this.segment = segment
  }

  interrupt(): void {
    this.#interrupted = true
    this.cancel.cancel()
  }

  /**
   * Returns the text of the result; `undefined` if the client cancelled the call or carries it from now on. Throws the error to
   * respond with. `suspend` is present if the client can carry the call.
   */
  async run(
    target: Target,
    request: RoundRequest,
    from: ResumePoint,
    suspend?: SuspendCall,
  ): Promise<string | undefined> {
    for (let point = from; ;) {
      const passed = await runTarget(target, request.args, this.#carrier(target, request, point, suspend !== undefined))
      if (passed.kind === 'over') return passed.text
      let next: ResumePoint | 'suspended' | 'cancelled'
      try {
        next = await this.#ask(passed, point, suspend)
      } catch (error) {
        return failureText(target, error, this.#ended(from, request))
      } finally {
        this.#wait?.end({ outcome: suspend === undefined ? 'over' : 'released' })
        this.#wait = undefined
      }
      if (next === 'suspended') return undefined
      if (next === 'cancelled') return this.#cancelledText(target, from, request)
      point = next
    }
  }

  #carrier(target: Target, request: RoundRequest, point: ResumePoint, isCarried: boolean): Carrier<PassResult> {
    const { app, underway, callMs } = this.#host
    const { flowId, startedAt, round, journal, flowState, answers, receivedAt } = point
    const can = (capability: Capability): boolean => hasCapability(this.#capabilities, capability)
    return {
      host: app,
      kind: isCarried ? 'client' : 'connection',
      holdWait: (wait) => {
        this.#wait = wait
      },
      flow: { id: flowId, startedAt, round, revision: this.#revision.name, declared: can },
      journal,
      flowState,
      answers,
      source: new RequestSource(request, app.limits),
      maxJournalBytes: app.seal.maxPlaintextBytes,
      timeoutMs: app.timeoutMs,
      waiting: {
        releaseFromMs: RELEASE_FROM_MS,
        sleepMs: callMs,
        askMs: callMs,
        advice: 'Raise `legacy.callMs`, or wait less.',
      },
      receivedAt: (key) => receivedAt?.get(key),
      underway,
      cancel: this.cancel,
      progress: request.progress,
      log: request.log,
      hasStore: app.tasks !== undefined,
      can,
      wantsHandover: () => false,
      suspended: (outcome) => {
        this.#reportCompleted(point, outcome)
        return outcome
      },
      ended: async (outcome) => {
        this.#reportCompleted(point, outcome)
        return { kind: 'over', text: await endText(target, outcome, this.#ended(point, request), request) }
      },
      cancelled: () => ({ kind: 'over', text: this.#cancelledText(target, point, request) }),
    }
  }

  /** Asks the client, and returns where the next pass starts. */
  async #ask(
    outcome: Suspension,
    { flowId, startedAt, round }: ResumePoint,
    suspend: SuspendCall | undefined,
  ): Promise<ResumePoint | 'suspended' | 'cancelled'> {
    const { journal, flowState } = outcome
    if (flowState.byHand !== undefined && round >= MOST_ROUNDS_BY_HAND) throw tooManyRounds()
    const asked = outcome.kind === 'asks' ? this.#write(outcome.questions, flowId) : []
    const visits = asked.filter(({ isVisit }) => isVisit).map(({ key }) => key)
    const next = { flowId, startedAt, round: round + 1, visits }
    if (suspend !== undefined && asked.length > 0 && !this.cancel.cancelled) {
      await suspend(asked, { ...next, journal, flowState, answers: {} })
      return 'suspended'
    }
    const receivedAt = new Map<string, number>()
    const dueAt = outcome.kind === 'asks' || outcome.kind === 'waiting' ? outcome.dueAt : undefined
    const hasDeadline = (key: string): boolean => flowState.waits?.has(key) === true
    const answers = await this.#answersTo(asked, { startedAt, dueAt, hasDeadline, receivedAt })
    if (answers === undefined) return 'cancelled'
    return {
      ...next,
      receivedAt,
      journal: Journal.read(journal.text()),
      flowState: readFlowState(JSON.parse(JSON.stringify(writeFlowState(flowState)))),
      answers,
    }
  }

  /** The text of a cancelled call: none, except if this server stops. */
  #cancelledText(target: Target, point: ResumePoint, request: RoundRequest): string | undefined {
    return this.#interrupted ? failureText(target, shutDown(target), this.#ended(point, request)) : undefined
  }

  #ended({ flowId, round }: ResumePoint, request: RoundRequest): EndedFlow<AppServices> {
    const { app } = this.#host
    return { host: app, flow: { id: flowId, round }, source: new RequestSource(request, app.limits) }
  }

  #write(questions: ReadonlyMap<string, string>, flowId: string): Question[] {
    const parsed = Array.from(questions, ([key, text]): [string, InputRequest] => [
      key,
      JSON.parse(text) as InputRequest,
    ])
    return writeQuestions(parsed, this.#revision, (key) => elicitationId(flowId, key))
  }

  /** `undefined` if the call was cancelled meanwhile. */
  #answersTo(
    asked: readonly Question[],
    { startedAt, dueAt, hasDeadline, receivedAt }: AskTimes,
  ): Promise<Answers | undefined> {
    const { app, asks, askMs, callMs } = this.#host
    const now = app.now()
    const left = startedAt + callMs - now
    if (left <= 0) {
      throw new RallyError('CALL_TIMEOUT', `The call took longer than legacy.callMs, which is ${callMs} ms.`)
    }
    const dueMs = dueAt === undefined ? undefined : Math.max(0, dueAt - now)
    if (asked.length === 0 && dueMs !== undefined && dueMs >= left) {
      throw new RallyError('CALL_TIMEOUT', `The call would wait longer than legacy.callMs, which is ${callMs} ms.`)
    }
    return askAll(asked, {
      asks,
      session: this.#session,
      outlet: this.#outlet,
      cancel: this.cancel,
      // A question with a deadline of its own expires in the pass that is due then.
      msOf: (key) => (hasDeadline(key) ? left : Math.min(askMs, left)),
      ...(dueMs !== undefined && { dueMs }),
      received: (key) => receivedAt.set(key, app.now()),
    })
  }

  /** Tells the client that the user has completed a visit, so that it can show that. By hand, only the handler knows. */
  #reportCompleted({ visits, answers, flowId }: ResumePoint, outcome: Suspension | Ending): void {
    if (outcome.kind !== 'done' && outcome.kind !== 'asks') return
    for (const key of visits) {
      if (answers?.[key]?.['action'] !== 'accept') continue
      if (outcome.kind === 'asks' && (outcome.questions.has(key) || outcome.flowState.byHand !== undefined)) continue
      const params = { elicitationId: elicitationId(flowId, key) }
      this.#outlet.notify(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/elicitation/complete', params }))
    }
  }
}

/** The same each time the visit is asked for. No author's key has a space, so no `io.uuid` of an author is equal to it. */
function elicitationId(flowId: string, key: string): string {
  return derivedUuid(flowId, `visit ${key}`)
}

function shutDown({ target }: Target): RallyError {
  return new RallyError(
    'INTERRUPTED',
    `"${target}": the server shut down before this call was done. The steps it completed are not undone.`,
  )
}

function tooManyRounds(): RallyError {
  return new RallyError(
    'TOO_MANY_ROUNDS',
    `The call returned inputRequired more than ${MOST_ROUNDS_BY_HAND} times, which is the limit for clients of this revision. Ask through io instead.`,
  )
}
