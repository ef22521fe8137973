// What really happened in a history, and the invariants that it is checked against. ARCHITECTURE.md lists them by these numbers.
import { CLOCK_SKEW_MS } from '../../src/seal/envelope.ts'
import { derivedUuid } from '../../src/flow/derive.ts'
import { DEFERRED_VERSION, META_DEFERRED } from '../../src/protocol/revisions/2026-07-28.ts'
import type { Clock, Place } from './clock.ts'
import type { Program, Release, Result, Value } from './program.ts'
import { checkResult } from './program.ts'

export type Invariant = 'I1' | 'I2' | 'I3' | 'I4' | 'I5' | 'I6' | 'I7' | 'I8'

export interface Violation {
  readonly invariant: Invariant
  readonly what: string
}

/** What a state and the flow before it hold. */
export interface Lineage {
  /** What handlers saw before this state was sealed, by key: steps and answers. */
  readonly recorded: ReadonlyMap<string, string>
  /** The answers that the client sent on the way to this state, by the text of the question. A decline is `undefined`. */
  readonly sent: ReadonlyMap<string, ReadonlySet<string | undefined>>
}

/** A state that a client was given. */
export interface StateNode extends Lineage {
  readonly token: string
  readonly owner: FlowPlan
  /** The earliest and the latest time at which it was sealed, by the clock of that server. `undefined` if another request sealed it. */
  readonly sealed: readonly [from: number, to: number] | undefined
  readonly mintKey: string
  /** The version that recorded the steps. `undefined` if another request sealed the state. */
  readonly version: string | undefined
  readonly hasSteps: boolean
  /** By key, the text that names each question. */
  readonly questions: ReadonlyMap<string, string>
  /** The responses to requests with this state that were no errors, for I7. */
  readonly responses: Set<string>
  /** The answers that came with it, for I7. */
  readonly uses: Set<string>
}

/** A call that a client makes. */
export interface FlowPlan {
  readonly number: number
  readonly tool: string
  readonly principal: string
  readonly startMs: number
}

/** A server process, as the invariants need to know it. */
export interface Server extends Place {
  readonly name: string
  readonly release: Release
  readonly keys: readonly string[]
  /** False with a codec, which has no key for the ids of flows. */
  readonly hasFlowKeys: boolean
}

/** A request on its way through the server. */
export interface ServedRequest {
  readonly plan: FlowPlan
  readonly from: StateNode | undefined
  /** The idempotency key of a first round. */
  readonly callKey?: string | undefined
  /** The answers that it brings, by the text of the question. */
  readonly answers: ReadonlyMap<string, string | undefined>
  readonly answersText: string
  /** Set when it reaches a server: whether its state must open there, or must not. */
  opens?: boolean | undefined
  server?: Server
  /** What its handler saw, by key. */
  readonly seen: Map<string, string>
  passes: number
  /** When its last pass started, by the clock of the server. */
  startedAt: number
  /** The flow of its pass. */
  flow?: string
  detaching: boolean
}

/** What an event belongs to: a request, or the run of a task by the worker that claimed it at this point of the history. */
export type Cause = { readonly request: ServedRequest } | { readonly claimedAt: number }

interface Task {
  readonly plan: FlowPlan
  /** What handlers saw in the flow, by key. */
  readonly recorded: Map<string, string>
  /** By key, the point of the history at which a handler of the task saw it. */
  readonly recordedAt: Map<string, number>
  readonly sent: Map<string, Set<string | undefined>>
  /** How it ended, once a server said so. */
  end?: string
  /** When it said so. */
  endShownAt?: number
  /** True if a client asked to cancel it. */
  cancelled: boolean
}

interface Execution {
  readonly flow: string
  readonly key: string
  readonly version: string
}

export const TTL_MS = 40_000

export class World {
  readonly clock: Clock<Cause>
  readonly violations: Violation[] = []
  /** What happened, in words; `undefined` if nobody wants to read it. */
  readonly story: string[] | undefined
  readonly faults = new Map<string, number>()
  readonly programs: ReadonlyMap<string, (version: number) => Program>
  readonly singleUse: boolean
  readonly nodes = new Map<string, StateNode>()
  /** By the flow's uuid. */
  readonly tasks = new Map<string, Task>()
  readonly taskFlows = new Map<string, string>()
  readonly #executions: Execution[] = []
  readonly #stepKeys = new Map<string, string>()
  /** By idempotency key and secret, the flow that it starts. */
  readonly #callFlows = new Map<string, string>()
  readonly #callResponses = new Map<string, string>()
  readonly #settledSteps = new Set<string>()
  readonly #served = new Set<ServedRequest>()
  #points = 0

  constructor(clock: Clock<Cause>, setup: Setup) {
    this.clock = clock
    this.programs = setup.programs
    this.singleUse = setup.singleUse
    this.story = setup.isTold ? [] : undefined
  }

  tell(text: () => string): void {
    this.story?.push(`${String(this.clock.elapsed).padStart(6)} ${text()}`)
  }

  fault(kind: string, text?: () => string): void {
    this.faults.set(kind, (this.faults.get(kind) ?? 0) + 1)
    this.tell(() => `! ${kind}${text === undefined ? '' : ` ${text()}`}`)
  }

  violate(invariant: Invariant, what: string): void {
    this.violations.push({ invariant, what })
    this.tell(() => `VIOLATION of ${invariant}: ${what}`)
  }

  /** A request reaches a server. Decides whether its state must open there (I3). `isForged`: its state belongs to another request. */
  arrived(request: ServedRequest, server: Server, isForged: boolean): void {
    request.server = server
    request.opens = isForged ? false : this.#isOpenable(request.from, server)
    this.#served.add(request)
    request.from?.uses.add(request.answersText)
  }

  /** Whether a state opens: under a key of the ring, and in its time by the clock of the server. `undefined` if it may or may not. */
  #isOpenable(node: StateNode | undefined, server: Server): boolean | undefined {
    if (node === undefined) return true
    if (node.sealed === undefined) return undefined
    if (!server.keys.includes(node.mintKey)) return false
    const now = this.clock.now + server.skewMs
    const [earliest, latest] = node.sealed
    const [opensFrom, opensTo] = [now - TTL_MS - CLOCK_SKEW_MS, now + CLOCK_SKEW_MS]
    if (earliest >= opensFrom && latest <= opensTo) return true
    return latest < opensFrom || earliest > opensTo ? false : undefined
  }

  /** A point of the history, later than all points before. */
  point(): number {
    return (this.#points += 1)
  }

  /** The request that is being served now; `undefined` if a worker runs a task. */
  get #request(): ServedRequest | undefined {
    const { cause } = this.clock.scene
    return cause !== undefined && 'request' in cause ? cause.request : undefined
  }

  /** A handler starts. */
  passStarted(server: Server, flow: string): void {
    const request = this.#request
    if (request === undefined) {
      this.tell(() => `  ${server.name} runs a task`)
      if (!this.tasks.has(flow)) this.violate('I5', 'a handler runs for a task that was never created')
      return
    }
    request.passes += 1
    request.startedAt = this.clock.now + server.skewMs
    request.flow = flow
    this.tell(() => `  ${server.name} runs ${request.plan.tool} of call ${request.plan.number}`)
    if (request.opens === false) {
      this.violate(
        'I3',
        `${server.name} ran the handler for a state that must not open there (call ${request.plan.number})`,
      )
    }
    this.#checkFlow(request, server, flow)
    const { from } = request
    if (from?.hasSteps === true && from.version !== undefined && from.version !== server.release.version) {
      this.violate('I8', `version ${server.release.version} runs from steps of version ${from.version}`)
    }
  }

  /** The repeats of a first round are one flow on all instances that mint with the same secret. */
  #checkFlow({ callKey }: ServedRequest, server: Server, flow: string): void {
    if (callKey === undefined || !server.hasFlowKeys) return
    const name = `${callKey} ${server.keys[0] ?? ''}`
    const known = this.#callFlows.get(name) ?? flow
    this.#callFlows.set(name, known)
    if (known !== flow) this.violate('I1', `a repeat of the first round ${callKey} is another flow`)
  }

  /** A step is about to run. */
  stepStarted(flow: string, key: string, idempotencyKey: string): void {
    const before = this.#recordedBefore(flow, key)
    if (before !== undefined) this.violate('I1', `step "${key}" ran again although its result ${before} was recorded`)
    const name = `${flow} ${key}`
    const known = this.#stepKeys.get(name) ?? idempotencyKey
    this.#stepKeys.set(name, known)
    if (known !== idempotencyKey) this.violate('I1', `step "${key}" has two idempotency keys in one flow`)
    if (this.#settledSteps.has(idempotencyKey)) {
      this.violate('I1', `step "${key}" ran again although its result was in the store for single use`)
    }
  }

  /** What was recorded of this step in the state of the request, or in the store when the worker claimed the task. */
  #recordedBefore(flow: string, key: string): string | undefined {
    const { cause } = this.clock.scene
    if (cause === undefined) return undefined
    if ('request' in cause) return cause.request.from?.recorded.get(key)
    const task = this.tasks.get(flow)
    const at = task?.recordedAt.get(key) ?? 0
    return at <= cause.claimedAt ? task?.recorded.get(key) : undefined
  }

  /** The effect of a step happens. Returns the number of this execution. */
  executed(server: Server, flow: string, key: string): number {
    const number = this.#executions.push({ flow, key, version: server.release.version }) - 1
    this.tell(() => `  ${server.name} runs step "${key}": execution ${number}`)
    return number
  }

  /** A store for single use has the result of this step. */
  stepSettled(idempotencyKey: string): void {
    this.#settledSteps.add(idempotencyKey)
  }

  saw(flow: string, key: string, value: Value): void {
    const request = this.#request
    const text = JSON.stringify(value)
    const task = this.tasks.get(flow)
    const known = request === undefined ? task?.recorded.get(key) : request.from?.recorded.get(key)
    if (request !== undefined) request.seen.set(key, text)
    else if (task !== undefined) {
      task.recorded.set(key, text)
      if (!task.recordedAt.has(key)) task.recordedAt.set(key, this.point())
    }
    // An answer may be asked for again when the wording changes. A step has one result for ever.
    if (known !== undefined && known !== text && isStep(text)) {
      this.violate('I1', `step "${key}" has the result ${text}, and had ${known} before`)
    }
  }

  answered(text: string, answer: string): void {
    if (!answer.endsWith(text)) this.violate('I4', `the question ${text} got the answer ${answer}`)
  }

  detaching(): void {
    const request = this.#request
    if (request !== undefined) request.detaching = true
  }

  /** A store has created a task: from now on it carries the flow. */
  taskCreated(
    server: Server,
    id: string,
    { flowId, journal }: { flowId: string; journal: string },
    plan: FlowPlan,
  ): void {
    const flow = derivedUuid(flowId, 'flow')
    if (this.tasks.has(flow)) return
    const creator = this.#creatorOf(server, flow, journal)
    const lineage = creator === undefined ? NO_LINEAGE : lineageAfter(creator)
    const recorded = new Map(lineage.recorded)
    const sent = new Map(Array.from(lineage.sent, ([text, answers]) => [text, new Set(answers)]))
    const recordedAt = new Map(Array.from(recorded.keys(), (key) => [key, 0]))
    this.tasks.set(flow, { plan, recorded, recordedAt, sent, cancelled: false })
    this.taskFlows.set(id, flow)
    this.tell(() => `  task ${this.taskFlows.size} was created`)
  }

  /** The request that hands its flow to the store: what its handler saw is in the journal. */
  #creatorOf(server: Server, flow: string, journal: string): ServedRequest | undefined {
    for (const request of this.#served) {
      if (request.server !== server || request.flow !== flow || !request.detaching) continue
      if ([...request.seen.values()].every((value) => isInJournal(value, journal))) return request
    }
    return undefined
  }

  task(id: string): Task | undefined {
    return this.tasks.get(this.taskFlows.get(id) ?? '')
  }

  /** A server has answered, whether or not the client ever learns of it. Returns the state that the client gets. */
  responded(request: ServedRequest, server: Server, response: Response): StateNode | undefined {
    this.#served.delete(request)
    const { result, error } = response
    this.tell(() => `  ${server.name} answers call ${request.plan.number}: ${told(response)}`)
    this.#checkOpening(request, server, error)
    if (result === undefined) return undefined
    if (this.singleUse && request.from !== undefined) this.#checkSingleUse(request.from, result)
    if (this.singleUse && server.hasFlowKeys) this.#checkRepeat(request, server, result)
    if (result['resultType'] === 'complete') this.#checkFinal(request, result)
    return result['resultType'] === 'input_required' ? this.#node(request, server, result) : undefined
  }

  #checkOpening(request: ServedRequest, server: Server, error: Response['error']): void {
    const isRefused = error?.message === 'Invalid or expired requestState'
    const { from, plan, opens } = request
    if (from === undefined) return
    if (opens === false && !isRefused) {
      this.violate('I3', `${server.name} took a state that must not open there (call ${plan.number})`)
    }
    const isUsed = this.singleUse && from.uses.size > 1
    if (opens === true && isRefused && !isUsed) {
      this.violate('I3', `${server.name} refused a state that must open there (call ${plan.number})`)
    }
  }

  #checkSingleUse(from: StateNode, result: Record<string, unknown>): void {
    from.responses.add(JSON.stringify(result))
    if (from.responses.size > 1) this.violate('I7', `a state of call ${from.owner.number} had two different responses`)
  }

  #checkRepeat({ callKey }: ServedRequest, server: Server, result: Record<string, unknown>): void {
    if (callKey === undefined) return
    const name = `${callKey} ${server.keys[0] ?? ''}`
    const text = JSON.stringify(result)
    const known = this.#callResponses.get(name) ?? text
    this.#callResponses.set(name, known)
    if (known !== text) this.violate('I7', `the first round ${callKey} had two different responses`)
  }

  #checkFinal(request: ServedRequest, result: Record<string, unknown>): void {
    if (result['isError'] === true) return
    const { sent, recorded } = lineageAfter(request)
    this.#checkResult(request.plan, textIn(result), sent, recorded)
  }

  /** I2: the result is that of a run without any fault, with the same answers and the same results of steps. */
  #checkResult(plan: FlowPlan, text: string, sent: Lineage['sent'], recorded: ReadonlyMap<string, string>): void {
    const result = JSON.parse(text) as Result
    const program = this.programs.get(plan.tool)?.(Number(result.version))
    const problem =
      program === undefined
        ? 'no such program'
        : checkResult(program, result, {
            storeFailed: this.faults.has('store failure'),
            wasSent: (question, answer) => sent.get(question)?.has(answer) === true,
            wasExecuted: (number, step) => {
              const execution = this.#executions[number]
              return (
                execution?.flow === step.flow &&
                execution.key === step.key &&
                (step.version ?? execution.version) === execution.version
              )
            },
          })
    if (problem !== undefined) this.violate('I2', `call ${plan.number} of ${plan.tool}: ${problem}`)
    for (const [key, value] of result.seen) {
      const before = recorded.get(key)
      if (before !== undefined && isStep(before) && before !== JSON.stringify(value)) {
        this.violate(
          'I1',
          `the result of call ${plan.number} has ${JSON.stringify(value)} for "${key}", and ${before} was recorded`,
        )
      }
    }
  }

  #node(request: ServedRequest, server: Server, result: Record<string, unknown>): StateNode {
    const token = String(result['requestState'])
    const known = this.nodes.get(token)
    if (known !== undefined) return known
    const { recorded, sent } = lineageAfter(request)
    const { now } = this.clock
    // With single use, the response waits for the store after the state was sealed, and may be that of another request.
    const isSent = isSentElsewhere(result)
    const isOwn = request.passes > 0 || (isSent && !this.singleUse)
    const sealedAt = now + server.skewMs
    const startedAt = this.singleUse ? request.startedAt : sealedAt
    const node: StateNode = {
      token,
      owner: request.plan,
      sealed: isOwn ? [Math.min(startedAt, sealedAt), Math.max(startedAt, sealedAt)] : undefined,
      mintKey: server.keys[0] ?? '',
      version: isSent ? request.from?.version : isOwn ? server.release.version : undefined,
      recorded,
      sent,
      hasSteps: [...recorded.values()].some(isStep),
      questions: questionsIn(result),
      responses: new Set(),
      uses: new Set(),
    }
    this.nodes.set(token, node)
    return node
  }

  /** I5: a task ends once, and how it ended never changes. */
  taskShown(id: string, task: Record<string, unknown>, sentAt: number): void {
    const known = this.task(id)
    if (known === undefined) return this.violate('I5', `a task is shown that was never created`)
    const { status } = task
    const isEnd = status === 'completed' || status === 'failed' || status === 'cancelled'
    const end = isEnd ? JSON.stringify([status, task['result'], task['error']]) : undefined
    // The instance read the task before it ended, and then stalled: whoever asked did so before anybody knew of the end.
    if (end === undefined && sentAt <= (known.endShownAt ?? 0)) return
    if (known.end !== undefined && end !== known.end) {
      return this.violate(
        'I5',
        `a task of call ${known.plan.number} ended as ${known.end}, and later was ${end ?? String(status)}`,
      )
    }
    if (end === undefined || known.end !== undefined) return
    known.end = end
    known.endShownAt = this.clock.now
    this.tell(() => `  the task of call ${known.plan.number} is ${String(status)}`)
    const result = task['result'] as Record<string, unknown> | undefined
    if (status === 'completed' && result?.['isError'] !== true) {
      this.#checkResult(known.plan, textIn(result ?? {}), known.sent, known.recorded)
    }
    if (status === 'cancelled' && !known.cancelled)
      this.violate('I5', 'a task is cancelled, and no client asked for that')
  }
}

export interface Setup {
  readonly programs: ReadonlyMap<string, (version: number) => Program>
  readonly singleUse: boolean
  readonly isTold: boolean
}

export interface Response {
  readonly result?: Record<string, unknown>
  readonly error?: { readonly code: number; readonly message: string; readonly data?: { readonly code?: string } }
}

const NO_LINEAGE: Lineage = { recorded: new Map(), sent: new Map() }

function lineageAfter({ from, answers, seen }: ServedRequest): Lineage {
  const sent = new Map<string, ReadonlySet<string | undefined>>(from?.sent)
  for (const [text, answer] of answers) sent.set(text, new Set([...(sent.get(text) ?? []), answer]))
  return { recorded: new Map([...(from?.recorded ?? []), ...seen]), sent }
}

function isStep(value: string): boolean {
  return value.startsWith('["s"') || value.startsWith('["f"')
}

/** True if a handler that saw this value may have left this journal. A number counts only as a whole: 9 is not in 24930. */
function isInJournal(value: string, journal: string): boolean {
  const [, content = ''] = JSON.parse(value) as Value
  if (typeof content === 'string') return journal.includes(JSON.stringify(content).slice(1, -1))
  return new RegExp(String.raw`[[,"]${content}[,\]"]`).test(journal)
}

/** The questions of a round or a task, by key, each with the text that names it. */
export function questionsIn({ inputRequests = {} }: Record<string, unknown>): Map<string, string> {
  const questions = new Map<string, string>()
  for (const [key, request] of Object.entries(inputRequests as Record<string, { params?: { message?: string } }>)) {
    questions.set(key, /\[[^\]]*\]/.exec(request.params?.message ?? '')?.[0] ?? '')
  }
  return questions
}

/** True if the server has another version of the tool, and asks for a retry. */
function isSentElsewhere({ _meta: meta }: Record<string, unknown>): boolean {
  return (meta as Record<string, unknown> | undefined)?.[META_DEFERRED] === DEFERRED_VERSION
}

export function textIn(result: Record<string, unknown>): string {
  const [content] = (result['content'] ?? []) as { text?: string }[]
  return content?.text ?? ''
}

function told({ result, error }: Response): string {
  if (error !== undefined) return `error "${error.message}"`
  if (result?.['resultType'] === 'input_required') {
    const keys = [...questionsIn(result).keys()]
    if (isSentElsewhere(result)) return 'has another version'
    return keys.length === 0 ? 'handed over' : `asks ${keys.join(', ')}`
  }
  if (result?.['resultType'] === 'task') return 'continues as a task'
  return result?.['isError'] === true ? `failed: ${textIn(result)}` : `done: ${textIn(result ?? {})}`
}
