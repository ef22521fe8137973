// Serves clients that are asked in a page of their host (MCP Apps). The page carries the sealed state, as a client of 2026-07-28
// would, and answers through a tool that hosts keep from the model.
//
// 1. Rounds run as for any client, with the state bound to tool, arguments and principal. Each state is used once.
// 2. Answers are taken from the page alone: a call needs the key that is in the page. The model's call brings no state.
// 3. What a call came to is recorded, so that the model can fetch it and a page that is opened again shows it.
import { MissingCapability } from '../flow/errors.ts'
import { PAGE_TYPE, PAGE_URI } from '../protocol/apps.ts'
import { isObject } from '../protocol/json.ts'
import type { InputRequests } from '../protocol/messages.ts'
import { SharedLimit } from '../protocol/shared-limit.ts'
import type { Claims } from '../seal/claims.ts'
import { requestState } from '../seal/claims.ts'
import { digest } from '../seal/canonical.ts'
import { InvalidState } from '../seal/errors.ts'
import type { Seal } from '../seal/seal.ts'
import type { AppsRequest, AppsServer, CheckedAppsOptions, ServedInApps } from '../server/apps.ts'
import { bitsOf } from '../server/capabilities.ts'
import { errorText, messageOf, plainText } from '../server/content.ts'
import type { AppServices } from '../server/context.ts'
import { protocolErrorOf } from '../server/failure.ts'
import { sharesOf } from '../server/limits.ts'
import { readRound } from '../server/params.ts'
import type { RequestInfo } from '../server/request.ts'
import type { ResolvedTarget } from '../server/resolve.ts'
import { targetOf } from '../server/resolve.ts'
import type { RoundRequest, RoundServices } from '../server/round.ts'
import { serveRound } from '../server/round.ts'
import { bindingOf, recordUsages } from '../server/single-use.ts'
import { RequestSource } from '../server/source.ts'
import { isListed } from '../server/visibility.ts'
import type { Mailbox } from '../store/mailbox.ts'
import { MailboxShare } from '../store/mailbox-share.ts'
import { MemoryMailbox } from '../store/memory/mailbox.ts'
import { MemoryOnceStore } from '../store/memory/once.ts'
import type { Store } from '../store/store.ts'
import { resourcesText, toolsText } from './lists.ts'
import { PageKeys } from './page-key.ts'
import type { CallKey, CallRecord, LatestRecord } from './records.ts'
import { CallRecords } from './records.ts'
import type { CallView, View } from './view.ts'
import { EXPIRED, META_VIEW, STALE, startedText, UNKNOWN, waitingText } from './view.ts'

/** How often a wait looks at what changes without a record: a task, a server that shuts down, a client that has left. */
const LOOK_MS = 1_000
/** How long a second window waits for the round that the first one runs. */
const OTHER_WINDOW_MS = 10_000
const LONGEST_ID = 64
/** How many delivered results are remembered. */
const MOST_DELIVERED = 10_000

export class AppsRoom implements AppsServer {
  readonly #app: AppServices
  readonly #waitMs: number
  readonly #rounds: Pick<RoundServices, 'seal' | 'once' | 'recordUsages'>
  readonly #keys: PageKeys
  readonly #records: CallRecords
  readonly #waits: SharedLimit<Wait>
  readonly #waiting = new Set<Wait>()
  /** Calls whose result the model has, the oldest first. */
  readonly #delivered = new Set<string>()

  constructor(app: AppServices, { waitMs, ttl }: CheckedAppsOptions, store: Store | undefined) {
    const { seal, limits, outages } = app
    const ttlMs = Math.round(ttl * 1000)
    const once = app.once ?? (store && outages.once(store.once)) ?? new MemoryOnceStore(app.now)
    const stateSeal: Seal = {
      ...seal,
      ...seal.for({ ...requestState, purpose: 'appState', name: 'state of a page' }, { ttl: ttlMs }),
    }
    this.#app = app
    this.#waitMs = waitMs
    this.#rounds = { seal: stateSeal, once, recordUsages: app.recordUsages ?? recordUsages(once, limits) }
    this.#keys = new PageKeys(seal)
    this.#records = new CallRecords(mailboxOf(app, store), stateSeal.lifetimeMs)
    this.#waits = new SharedLimit({ ...sharesOf(limits, 'maxTaskWaits'), evict: (wait) => (wait.isEvicted = true) })
  }

  serve(what: AppsRequest, served: ServedInApps): Promise<string | undefined> {
    return this[what](served)
  }

  async tools(served: ServedInApps): Promise<string> {
    return toolsText(served)
  }

  async resources(served: ServedInApps): Promise<string> {
    return resourcesText(served)
  }

  async page({ app, context }: ServedInApps): Promise<string> {
    const { default: page } = await import('./page.html?raw')
    const key = await this.#keys.mint(context.caller?.principal)
    // A custom codec may make a key of any characters.
    const attribute = key.replace(/["&<]/g, (character) => `&#${character.charCodeAt(0)};`)
    const text = page.replace('content="KEY"', () => `content="${attribute}"`)
    const contents = [{ uri: PAGE_URI, mimeType: PAGE_TYPE, text, _meta: { ui: { prefersBorder: true } } }]
    const result = plainText({ contents }, app.serverMeta)
    return `${result.slice(0, -1)},${app.registry.hintsText(false)}}`
  }

  /** The model calls a tool. What it sends as answers or as a state is not read. */
  async begin(served: ServedInApps): Promise<string | undefined> {
    const { app, request, info, context } = served
    const target = targetOf(request)
    const round = readRound(request, asked(info, app), context, NO_RETRY)
    const text = await serveRound({ ...app, ...this.#rounds }, readable(target), round)
    if (text === undefined || text.startsWith(COMPLETE)) return text
    const noted = await this.#note({ target, round, text, before: undefined })
    const view = await this.#view(noted.call, noted.record)
    if (view.kind === 'done') return plainText(view.result, app.serverMeta)
    const content = [{ type: 'text', text: startedText(view) }]
    return plainText({ content, _meta: { [META_VIEW]: view } }, app.serverMeta)
  }

  /** The page answers, or asks how its call stands. */
  async answer(served: ServedInApps): Promise<string | undefined> {
    const { app, request, context } = served
    const { arguments: given } = request.params ?? {}
    const sent = isObject(given) ? given : {}
    const principal = context.caller?.principal
    if (!(await this.#keys.opens(sent['key'], principal))) return tell(app, STALE)
    if (sent['answers'] !== undefined && sent['state'] !== undefined) return this.#answerRound(served, sent)
    const found = await this.#find({ id: readId(sent['id']), principal }, served)
    if (found === undefined) return tell(app, UNKNOWN)
    if (sent['answers'] !== undefined) await this.#answerTask(found, sent['answers'])
    return tell(app, await this.#view(found.call, found.record))
  }

  /** The model waits for the result. */
  async result(served: ServedInApps): Promise<string | undefined> {
    const { request, context } = served
    const { arguments: given } = request.params ?? {}
    const principal = context.caller?.principal
    const call = { id: readId(isObject(given) ? given['id'] : undefined), principal }
    const owner = principal === undefined ? '' : digest(principal)
    const wait: Wait = { id: call.id, principal, isEvicted: this.#waits.makeRoom(owner, 1) !== undefined }
    if (!wait.isEvicted) this.#waits.set(owner, wait, 1)
    this.#waiting.add(wait)
    try {
      return await this.#wait(call, served, wait)
    } finally {
      this.#waiting.delete(wait)
      this.#waits.delete(owner, wait)
    }
  }

  async #wait(call: CallKey, served: ServedInApps, wait: Wait): Promise<string | undefined> {
    const { app, context } = served
    const until = performance.now() + this.#waitMs
    for (;;) {
      const change = this.#records.watch(call)
      try {
        const found = await this.#find(call, served)
        if (found === undefined) return errorText(UNKNOWN.message, app.serverMeta)
        const view = await this.#view(call, found.record)
        if (view.kind === 'done') {
          this.#deliver(call)
          return plainText(view.result, app.serverMeta)
        }
        if (context.cancel?.cancelled === true) return undefined
        const left = until - performance.now()
        if (left <= 0 || wait.isEvicted || this.#app.handover.draining) {
          return plainText({ content: [{ type: 'text', text: waitingText(view) }] }, app.serverMeta)
        }
        await change.within(Math.min(left, LOOK_MS))
      } finally {
        change.stop()
      }
    }
  }

  async #answerRound(served: ServedInApps, sent: Record<string, unknown>): Promise<string | undefined> {
    const { app, request, info, context } = served
    // Found with the request, so that scopes and visibility of the tool were checked with it.
    const target = request.own?.kind === 'answered' ? request.own.tool : undefined
    if (target === undefined) return tell(app, EXPIRED)
    const inner = { ...request, params: { name: target.target, arguments: sent['arguments'] ?? {} }, target }
    const retry = { requestState: sent['state'], inputResponses: sent['answers'] }
    const round = readRound(inner, asked(info, app), context, retry)
    try {
      const before = await this.#rounds.seal.open(round.state, bindingOf(target, round))
      return await this.#runRound(app, { target, round, before })
    } catch (error) {
      if (error instanceof InvalidState) return tell(app, EXPIRED)
      throw error
    }
  }

  async #runRound(app: AppServices, answered: AnsweredRound): Promise<string | undefined> {
    const { target, round, before } = answered
    const call = { id: idOf(before), principal: round.caller?.principal }
    const latest = await this.#records.latest(call)
    // Answered before, here or in another window. What came of it stands.
    if (latest !== undefined && latest.round > before.round) return tell(app, await this.#view(call, latest.record))
    let text: string | undefined
    try {
      text = await serveRound({ ...app, ...this.#rounds, serverMeta: '{}' }, readable(target), round)
    } catch (error) {
      const moved = error instanceof InvalidState ? await this.#after(call, before.round) : undefined
      if (moved === undefined) throw error
      return tell(app, await this.#view(call, moved.record))
    }
    if (text === undefined) return undefined
    await this.#note({ ...answered, text })
    const now = await this.#records.latest(call)
    return tell(app, now === undefined ? UNKNOWN : await this.#view(call, now.record))
  }

  /** Another window runs the round with other answers: what comes of it. */
  async #after(call: CallKey, round: number): Promise<LatestRecord | undefined> {
    const until = performance.now() + OTHER_WINDOW_MS
    for (;;) {
      const change = this.#records.watch(call)
      try {
        const latest = await this.#records.latest(call)
        if (latest !== undefined && latest.round > round) return latest
        const left = until - performance.now()
        if (left <= 0) return undefined
        await change.within(left)
      } finally {
        change.stop()
      }
    }
  }

  async #answerTask({ call, record }: FoundCall, answers: unknown): Promise<void> {
    if (record.kind !== 'task') return
    await this.#app.tasks?.update(record.taskId, answers, call.principal)
  }

  /** The call, if the caller may know of its tool. */
  async #find(call: CallKey, { app, request, info, context }: ServedInApps): Promise<FoundCall | undefined> {
    const latest = await this.#records.latest(call)
    const tool = latest && app.registry.tools.get(latest.record.tool)
    if (latest === undefined || tool === undefined) return undefined
    const { caller, overHttp } = context
    const viewer = new RequestSource({ info, meta: request.meta, caller, overHttp }, app.limits)
    return isListed(tool, viewer, app.logger) ? { call, record: latest.record } : undefined
  }

  /** Records what a round came to. */
  async #note({ target, round, before, text }: EndedRound): Promise<FoundCall> {
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
      return this.#write({ id: idOf(next), principal }, next.round, record)
    }
    if (result['resultType'] === 'task') {
      const taskId = String(result['taskId'])
      const id = before === undefined ? digest(`apps task ${taskId}`) : idOf(before)
      return this.#write({ id, principal }, (before?.round ?? 0) + 1, { kind: 'task', tool, taskId })
    }
    if (before === undefined) throw new InvalidState('a first round that ended has no record')
    const record: CallRecord = { kind: 'done', tool, result: withoutType(result) }
    return this.#write({ id: idOf(before), principal }, before.round + 1, record)
  }

  async #write(call: CallKey, round: number, record: CallRecord): Promise<FoundCall> {
    await this.#records.write(call, round, record)
    return { call, record }
  }

  #deliver(call: CallKey): void {
    const [oldest] = this.#delivered
    if (this.#delivered.size >= MOST_DELIVERED && oldest !== undefined) this.#delivered.delete(oldest)
    this.#delivered.add(nameOf(call))
  }

  /** True if the model waits for the result, or has it. Another instance may not know: then the page tells the model once more. */
  #isHeard(call: CallKey): boolean {
    const name = nameOf(call)
    return this.#delivered.has(name) || [...this.#waiting].some((wait) => nameOf(wait) === name)
  }

  async #view({ id, principal }: CallKey, record: CallRecord): Promise<CallView> {
    const heard = this.#isHeard({ id, principal })
    if (record.kind === 'asks') return { ...record, id }
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
        return { kind: 'asks', id, tool, arguments: {}, questions: task.inputRequests ?? {} }
      case 'completed':
        return { kind: 'done', id, tool, heard, result: withoutType(task.result ?? {}) }
      default: {
        const text = task?.error?.message ?? task?.statusMessage ?? `The task is ${task?.status ?? 'gone'}.`
        return { kind: 'done', id, tool, heard, result: { content: [{ type: 'text', text }], isError: true } }
      }
    }
  }
}

/** A call of the model that waits. */
interface Wait extends CallKey {
  isEvicted: boolean
}

interface FoundCall {
  readonly call: CallKey
  readonly record: CallRecord
}

interface AnsweredRound {
  readonly target: ResolvedTarget
  readonly round: RoundRequest
  /** The state that the round began with. */
  readonly before: Claims
}

interface EndedRound extends Omit<AnsweredRound, 'before'> {
  readonly before: Claims | undefined
  readonly text: string
}

const COMPLETE = '{"resultType":"complete"'
const NO_RETRY = {}

function mailboxOf({ now, limits, outages }: AppServices, store: Store | undefined): Mailbox {
  const { maxWaitingBytes: maxBytes, share } = limits
  if (store === undefined) return new MemoryMailbox({ now, maxBytes, share })
  return store.mailbox instanceof MemoryMailbox
    ? store.mailbox
    : new MailboxShare(outages.mailbox(store.mailbox), maxBytes, now)
}

/** The page shows forms and addresses, and follows tasks. It has no model and no roots, whatever the client has. */
function asked(info: RequestInfo, { tasks }: AppServices): RequestInfo {
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

function readId(id: unknown): string {
  return typeof id === 'string' ? id.slice(0, LONGEST_ID) : ''
}

function withoutType({
  resultType: _type,
  _meta,
  ...result
}: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return isObject(_meta) && Object.keys(_meta).length > 0 ? { ...result, _meta } : result
}

/** Both places, because hosts lose one or the other. The model gets no results of the page's tool. */
function tell({ serverMeta }: AppServices, view: View): string {
  const isProblem = view.kind === 'problem'
  const content = [{ type: 'text', text: isProblem ? view.message : 'See the form.' }]
  const members = { content, structuredContent: { [META_VIEW]: view }, ...(isProblem && { isError: true }) }
  return plainText({ ...members, _meta: { [META_VIEW]: view } }, serverMeta)
}
