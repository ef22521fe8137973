// One call, with the questions of each pass asked as requests of our own. The connection carries its flow and the passes go
// on in memory, or the client does (SEP-1685), and what is here of the call ends with a question.
//
// The journal goes through its text between two passes, as it would with any other carrier.
import { randomBytes } from 'node:crypto'
import type { Answers } from '../flow/answering.ts'
import { Cancel } from '../protocol/cancel.ts'
import type { FlowState } from '../flow/flow-state.ts'
import { emptyState, readFlowState, writeFlowState } from '../flow/flow-state.ts'
import { derivedUuid } from '../flow/derive.ts'
import { startPass } from '../flow/io.ts'
import { Journal } from '../flow/journal.ts'
import type { Outcome } from '../flow/carrier.ts'
import type { Flow, PassInput } from '../flow/carrier.ts'
import { Pass } from '../flow/pass.ts'
import { RallyError } from '../protocol/errors.ts'
import type { InputRequest } from '../protocol/messages.ts'
import { hasCapability } from '../server/capabilities.ts'
import type { Target, RoundRequest } from '../server/round.ts'
import type { LegacyHost, Outlet } from './host.ts'
import type { Question } from './question.ts'
import { askAll, writeQuestions } from './questions.ts'
import type { Session, Stoppable } from './session.ts'

/** As many as most clients of 2026-07-28 take. Whoever needs more asks through `io`, and is bounded by time. */
const MOST_ROUNDS_BY_HAND = 10

/** How far a call has come. */
export interface Standing {
  readonly flowId: string
  readonly startedAt: number
  /** Of the pass to come. */
  readonly round: number
  readonly journal: Journal
  readonly carry: FlowState
  /** What the round before has brought, and the pages to visit among what it asked. */
  readonly answers: Answers | undefined
  readonly visits: readonly string[]
}

/** Has the client carry the call on: it stands there once all of these are answered. */
export type Part = (asked: readonly Question[], standing: Standing) => Promise<void>

export function beginning(now: number): Standing {
  return {
    flowId: randomBytes(16).toString('base64url'),
    startedAt: now,
    round: 0,
    journal: Journal.empty(),
    carry: emptyState(),
    answers: undefined,
    visits: [],
  }
}

export class Call implements Stoppable {
  readonly cancel = new Cancel()
  readonly leg: number
  readonly #host: LegacyHost
  readonly #session: Session
  readonly #outlet: Outlet
  #interrupted = false

  constructor(host: LegacyHost, session: Session, outlet: Outlet) {
    this.#host = host
    this.#session = session
    this.#outlet = outlet
    this.leg = outlet.parting?.leg ?? 0
  }

  interrupt(): void {
    this.#interrupted = true
    this.cancel.cancel()
  }

  /**
   * The text of the result; nothing where the client has cancelled, or carries the call from here on. Throws what is to be
   * told as an error. `part` is given where the client can carry it.
   */
  async run(carried: Target, request: RoundRequest, from: Standing, part?: Part): Promise<string | undefined> {
    const { flowId, startedAt } = from
    let { journal, carry, answers, visits, round } = from
    for (; ; round += 1) {
      const flow = { id: flowId, startedAt, round }
      const outcome = await this.#pass(carried, request, flow, { journal, flowState: carry, answers })
      this.#tellCompleted(visits, answers, outcome, flowId)
      switch (outcome.kind) {
        case 'done':
          return this.#result(carried, request, outcome.value)
        case 'failed':
          return carried.failureText(outcome.error, this.#host.app)
        case 'cancelled':
          return this.#cancelled(carried)
      }
      try {
        if (outcome.flowState.byHand !== undefined && round >= MOST_ROUNDS_BY_HAND) throw tooManyRounds()
        const asked = outcome.kind === 'asks' ? this.#write(outcome.questions, flowId) : []
        visits = asked.filter(({ isVisit }) => isVisit).map(({ key }) => key)
        if (part !== undefined && asked.length > 0 && !this.cancel.cancelled) {
          const { journal: grown, flowState: carriedOn } = outcome
          const standing = {
            flowId,
            startedAt,
            round: round + 1,
            journal: grown,
            carry: carriedOn,
            answers: {},
            visits,
          }
          await part(asked, standing)
          return undefined
        }
        answers = await this.#ask(asked, startedAt)
      } catch (error) {
        return carried.failureText(error, this.#host.app)
      }
      if (answers === undefined) return this.#cancelled(carried)
      journal = Journal.read(outcome.journal.text())
      carry = readFlowState(JSON.parse(JSON.stringify(writeFlowState(outcome.flowState))))
    }
  }

  #pass(
    carried: Target,
    request: RoundRequest,
    flow: { id: string; startedAt: number; round: number },
    from: Pick<PassInput, 'journal' | 'flowState' | 'answers'>,
  ): Promise<Outcome> {
    const { app, underway } = this.#host
    const { capabilities, revision } = this.#session
    const can = (capability: Parameters<Flow['declared']>[0]): boolean => hasCapability(capabilities, capability)
    const input: PassInput = {
      ...from,
      flow: { ...flow, revision: revision.name, declared: can },
      forms: carried.forms,
      can,
      limits: { journalBytes: app.seal.maxPlaintextBytes, passMs: carried.timeoutMs ?? app.timeoutMs },
      logger: app.logger,
      progress: request.progress,
      log: request.log,
      underway,
      cancel: this.cancel,
      strict: app.strict,
      now: app.now,
    }
    return new Promise((finish) => startPass(new Pass(input, finish), (io) => carried.run(request.args, io)))
  }

  async #result(carried: Target, request: RoundRequest, value: unknown): Promise<string> {
    try {
      return await carried.resultText(value, this.#host.app, request)
    } catch (error) {
      return carried.failureText(error, this.#host.app)
    }
  }

  #cancelled(carried: Target): string | undefined {
    return this.#interrupted ? carried.failureText(goingDown(), this.#host.app) : undefined
  }

  #write(questions: ReadonlyMap<string, string>, flowId: string): Question[] {
    const parsed = Array.from(questions, ([key, text]): [string, InputRequest] => [
      key,
      JSON.parse(text) as InputRequest,
    ])
    return writeQuestions(parsed, this.#session.revision, (key) => elicitationId(flowId, key))
  }

  /** `undefined` where the call was cancelled meanwhile. */
  #ask(asked: readonly Question[], startedAt: number): Promise<Answers | undefined> {
    const { app, asks, askMs, callMs } = this.#host
    const left = startedAt + callMs - app.now()
    if (left <= 0) throw new RallyError('CALL_TIMEOUT', `The call took longer than ${callMs} ms.`)
    return askAll(asked, {
      asks,
      session: this.#session,
      outlet: this.#outlet,
      cancel: this.cancel,
      ms: Math.min(askMs, left),
    })
  }

  /** The client may show that what the user went to a page for is done. By hand only the handler knows. */
  #tellCompleted(visits: readonly string[], answers: Answers | undefined, outcome: Outcome, flowId: string): void {
    if (outcome.kind !== 'done' && outcome.kind !== 'asks') return
    for (const key of visits) {
      if (answers?.[key]?.['action'] !== 'accept') continue
      if (outcome.kind === 'asks' && (outcome.questions.has(key) || outcome.flowState.byHand !== undefined)) continue
      const params = { elicitationId: elicitationId(flowId, key) }
      this.#outlet.notify(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/elicitation/complete', params }))
    }
  }
}

/** The same each time a visit is asked for. No key of the author's has a space, so this is no `io.uuid` of theirs. */
function elicitationId(flowId: string, key: string): string {
  return derivedUuid(flowId, `visit ${key}`)
}

function goingDown(): RallyError {
  return new RallyError(
    'INTERRUPTED',
    'The server is going down before this call was done. What it has done so far stands.',
  )
}

function tooManyRounds(): RallyError {
  return new RallyError(
    'TOO_MANY_ROUNDS',
    `The call took more than ${MOST_ROUNDS_BY_HAND} rounds by hand, which is all that a client of this revision gets. Ask through io instead.`,
  )
}
