// The calls that wait for their user in a page: each round runs as for any client, and what it came to is recorded.
//
// 1. Rounds run with a state that is bound to tool, arguments and principal. Each state is used once.
// 2. What a call came to is recorded, so that the model can fetch it and a page that is opened again shows it.
import { MissingCapability } from '../flow/errors.ts'
import { isObject } from '../protocol/json.ts'
import type { InputRequests } from '../protocol/messages.ts'
import type { Claims } from '../seal/claims.ts'
import { requestState } from '../seal/claims.ts'
import { digest } from '../seal/canonical.ts'
import { InvalidState } from '../seal/errors.ts'
import type { Seal } from '../seal/seal.ts'
import { bitsOf } from '../server/capabilities.ts'
import { errorText, messageOf } from '../server/content.ts'
import type { AppServices } from '../server/context.ts'
import { protocolErrorOf } from '../server/failure.ts'
import type { RequestInfo } from '../server/request.ts'
import type { ResolvedTarget } from '../server/resolve.ts'
import type { RoundRequest, RoundServices } from '../server/round.ts'
import { serveRound } from '../server/round.ts'
import { bindingOf, recordUsages } from '../server/single-use.ts'
import type { Viewer } from '../server/visibility.ts'
import { isListed } from '../server/visibility.ts'
import { limitedMailbox } from '../store/mailbox-share.ts'
import { MemoryOnceStore } from '../store/memory/once.ts'
import type { Store } from '../store/store.ts'
import { withIssues } from './misfits.ts'
import type { CallKey, CallRecord, LatestRecord } from './records.ts'
import { CallRecords } from './records.ts'
import type { CallView } from './view.ts'

/** How long a second window waits for the round that the first one runs. */
const OTHER_WINDOW_MS = 10_000
/** How many delivered results are remembered. */
const MOST_DELIVERED = 10_000

export interface FoundCall extends LatestRecord {
  readonly call: CallKey
}

export class AskedCalls {
  readonly records: CallRecords
  readonly #app: AppServices
  readonly #rounds: Pick<RoundServices, 'seal' | 'once' | 'recordUsages'>
  /** Calls of the model that wait for a result. */
  readonly #waiting = new Set<CallKey>()
  /** Names of the calls whose result the model has, the oldest first. */
  readonly #delivered = new Set<string>()

  /** `ttl` is in seconds. */
  constructor(app: AppServices, ttl: number, store: Store | undefined) {
    const { seal, limits, outages } = app
    const once = app.once ?? (store && outages.once(store.once)) ?? new MemoryOnceStore(app.now)
    const stateSeal: Seal = {
      ...seal,
      ...seal.for({ ...requestState, purpose: 'appState', name: 'state of a page' }, { ttl: Math.round(ttl * 1000) }),
    }
    this.#app = app
    this.#rounds = { seal: stateSeal, once, recordUsages: app.recordUsages ?? recordUsages(once, limits) }
    this.records = new CallRecords(limitedMailbox(store?.mailbox, app), stateSeal.lifetimeMs)
  }

  /**
   * Runs the first round. `owner` is the one whose share of the mailbox the record uses. Returns the text of the result, or the call if
   * it waits for its user. Returns `undefined` if the client has cancelled.
   */
  async begin(target: ResolvedTarget, first: RoundRequest, owner: string): Promise<string | FoundCall | undefined> {
    // The state is bound to the arguments as the record and the page bring them back: JSON writes -0 as 0.
    const round = { ...first, args: JSON.parse(JSON.stringify(first.args)) as RoundRequest['args'] }
    const text = await serveRound({ ...this.#app, ...this.#rounds }, readable(target), round)
    if (text === undefined || text.startsWith(COMPLETE)) return text
    return this.#note({ target, round, owner, text, before: undefined })
  }

  /**
   * Runs the round that answers a state. Returns how the call stands then, also if another window answered first; `undefined` if the
   * client has cancelled. Throws `InvalidState` if the state does not open.
   */
  async answer(target: ResolvedTarget, round: RoundRequest, owner: string): Promise<FoundCall | undefined> {
    const before = await this.#rounds.seal.open(round.state, bindingOf(target, round))
    const call = { id: idOf(before), principal: round.caller?.principal }
    const latest = await this.records.latest(call)
    // Answered before, here or in another window. What came of it stands.
    if (latest !== undefined && latest.round > before.round) return { call, ...latest }
    let text: string | undefined
    try {
      text = await serveRound({ ...this.#app, ...this.#rounds, serverMeta: '{}' }, readable(target), round)
    } catch (error) {
      const moved = error instanceof InvalidState ? await this.#after(call, before.round) : undefined
      if (moved === undefined) throw error
      return { call, ...moved }
    }
    if (text === undefined) return undefined
    const noted = await this.#note({ target, round, owner, text, before })
    const now = await this.records.latest(call)
    return now === undefined ? noted : { call, ...now }
  }

  async answerTask({ call, record }: FoundCall, answers: unknown): Promise<void> {
    if (record.kind === 'task') await this.#app.tasks?.update(record.taskId, answers, call.principal)
  }

  /** The call, if the viewer may know of its tool. A task that has begun stays its owner's, whatever happens to the tool. */
  async find(call: CallKey, viewer: Viewer): Promise<FoundCall | undefined> {
    const { registry, logger } = this.#app
    const latest = await this.records.latest(call)
    if (latest === undefined) return undefined
    if (latest.record.kind === 'task') return { call, ...latest }
    const tool = registry.tools.get(latest.record.tool)
    if (tool === undefined) return undefined
    return isListed(tool, viewer, logger) ? { call, ...latest } : undefined
  }

  /** How the call stands. */
  async view({ call, record }: FoundCall): Promise<CallView> {
    const { id, principal } = call
    const heard = this.#isHeard(call)
    if (record.kind === 'asks') return { ...record, id, ...withIssues(record.questions) }
    if (record.kind === 'done') return { ...record, id, heard }
    const { tool, taskId } = record
    const task = await this.#app.tasks?.get(taskId, principal)
    switch (task?.status) {
      case 'working':
        return {
          kind: 'working',
          id,
          tool,
          pollMs: task.pollIntervalMs,
          ...(task.statusMessage && { message: task.statusMessage }),
        }
      case 'input_required':
        return { kind: 'asks', id, tool, arguments: {}, ...withIssues(task.inputRequests ?? {}) }
      case 'completed':
        return { kind: 'done', id, tool, heard, result: withoutType(task.result ?? {}) }
      default: {
        const text = task?.error?.message ?? task?.statusMessage ?? `The task is ${task?.status ?? 'gone'}.`
        return { kind: 'done', id, tool, heard, result: { content: [{ type: 'text', text }], isError: true } }
      }
    }
  }

  /** The model waits for the result of this call. Returns a function that ends it. */
  listen(call: CallKey): () => void {
    this.#waiting.add(call)
    return () => void this.#waiting.delete(call)
  }

  /** The model has the result of this call. */
  deliver(call: CallKey): void {
    const [oldest] = this.#delivered
    if (this.#delivered.size >= MOST_DELIVERED && oldest !== undefined) this.#delivered.delete(oldest)
    this.#delivered.add(nameOf(call))
  }

  /** True if the model waits for the result, or has it. Another instance may not know: then the page tells the model once more. */
  #isHeard(call: CallKey): boolean {
    return this.#delivered.has(nameOf(call)) || [...this.#waiting].some((waiting) => nameOf(waiting) === nameOf(call))
  }

  /** Another window runs the round with other answers: what comes of it. */
  async #after(call: CallKey, round: number): Promise<LatestRecord | undefined> {
    const until = performance.now() + OTHER_WINDOW_MS
    for (;;) {
      const change = this.records.watch(call)
      try {
        const latest = await this.records.latest(call)
        if (latest !== undefined && latest.round > round) return latest
        const left = until - performance.now()
        if (left <= 0) return undefined
        await change.within(left)
      } finally {
        change.stop()
      }
    }
  }

  /** Records what a round came to. */
  async #note({ target, round, owner, before, text }: EndedRound): Promise<FoundCall> {
    const { target: tool } = target
    const principal = round.caller?.principal
    const result = JSON.parse(text) as Record<string, unknown>
    if (result['resultType'] === 'input_required') {
      const { inputRequests = {}, requestState: state } = result as {
        inputRequests?: InputRequests
        requestState: string
      }
      const next = await this.#rounds.seal.open(state, bindingOf(target, round))
      const record: CallRecord = { kind: 'asks', tool, arguments: round.args, state, questions: inputRequests }
      return this.#write({ id: idOf(next), principal }, next.round, record, owner)
    }
    if (result['resultType'] === 'task') {
      const taskId = String(result['taskId'])
      const id = before === undefined ? digest(`apps task ${taskId}`) : idOf(before)
      return this.#write({ id, principal }, (before?.round ?? 0) + 1, { kind: 'task', tool, taskId }, owner)
    }
    if (before === undefined) throw new InvalidState('a first round that ended has no record')
    const record: CallRecord = { kind: 'done', tool, result: withoutType(result) }
    return this.#write({ id: idOf(before), principal }, before.round + 1, record, owner)
  }

  async #write(call: CallKey, round: number, record: CallRecord, owner: string): Promise<FoundCall> {
    await this.records.write(call, round, record, owner)
    return { call, round, record }
  }
}

interface EndedRound {
  readonly target: ResolvedTarget
  readonly round: RoundRequest
  readonly owner: string
  /** The state that the round began with. */
  readonly before: Claims | undefined
  readonly text: string
}

const COMPLETE = '{"resultType":"complete"'

/** The page shows forms and addresses, and follows tasks. It has no model and no roots, whatever the client has. */
export function askedInPage(info: RequestInfo, { tasks }: AppServices): RequestInfo {
  const capabilities = bitsOf([
    'elicitation.form',
    'elicitation.url',
    ...(tasks === undefined ? [] : (['tasks'] as const)),
  ])
  return { ...info, capabilities }
}

/** Hosts drop protocol errors. A failure becomes a result, which the model and the user can read. */
function readable(target: ResolvedTarget): ResolvedTarget {
  return {
    ...target,
    failureText: (error, host) => {
      if (error instanceof MissingCapability) return errorText(noSuchQuestion(target.target), host.serverMeta)
      return errorText((protocolErrorOf(error) ?? { message: messageOf(error) }).message, host.serverMeta)
    },
  }
}

function noSuchQuestion(tool: string): string {
  return `"${tool}" needs the client's model or its roots, which the form of this app cannot give. Use a client that supports sampling and roots.`
}

/** Not the id of the flow, which is secret. */
function idOf({ flowId }: Claims): string {
  return digest(`apps ${flowId}`)
}

function nameOf({ id, principal }: CallKey): string {
  return JSON.stringify([id, principal ?? null])
}

function withoutType({
  resultType: _type,
  _meta,
  ...result
}: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return isObject(_meta) && Object.keys(_meta).length > 0 ? { ...result, _meta } : result
}
