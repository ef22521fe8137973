// One claimed task and one worker: the store carries the flow. Runs passes until the task ends or has to wait.
//
// 1. A result is in the store before the handler sees it.
// 2. Every write carries the fence of the claim. A worker that has lost its lease writes nothing and stops.
// 3. Questions and answers are written against the version that was read, so an answer that arrives meanwhile is never lost.
// 4. An answer stays in the store until its effect is there too: a journal entry, a flow state, or the question asked again.
import { AsyncResource } from 'node:async_hooks'
import type { CallSource } from '../flow/caller.ts'
import type { FailurePlace } from '../flow/failure-log.ts'
import type { Carrier, Ending, JournalWriter, RunningPass, Suspension, WaitLimits } from '../flow/carrier.ts'
import { failureReference, flowDigest } from '../flow/derive.ts'
import type { EventSource } from '../flow/event-source.ts'
import type { ShownQuestion, Wait } from '../flow/flow-state.ts'
import { writeFlowState, writeWaits } from '../flow/flow-state.ts'
import { Journal } from '../flow/journal.ts'
import type { ObservedTask, TaskEnd } from '../flow/observer.ts'
import { Observers } from '../flow/observer.ts'
import type { Pass } from '../flow/pass.ts'
import type { SavedFlow } from '../flow/run.ts'
import { resumable, runTarget, VersionChanged } from '../flow/run.ts'
import type { Underway } from '../flow/underway.ts'
import { Cancel } from '../protocol/cancel.ts'
import { ObserverLog } from '../protocol/observer-log.ts'
import { capabilitiesOf, hasCapability } from '../server/capabilities.ts'
import type { AppServices } from '../server/context.ts'
import type { RegisteredTool } from '../server/tool.ts'
import type { ClaimedTask, TaskChange, TaskLease, TaskStore } from '../store/tasks.ts'
import { StoreUnavailable } from '../store/outages.ts'
import { isEnd } from '../store/tasks.ts'
import { endingOf, giveUp, hasFailed, isInterrupted, StoreFault, writeFailure, writeSuccess } from './ending.ts'
import type { EventTokens } from './events.ts'
import { readClaimNote, TaskHistory } from './history.ts'
import { Inbox } from './inbox.ts'
import { Lease, LeaseLost } from './lease.ts'
import type { TaskFlowState, TaskRequest } from './state.ts'
import { flowStateOf, isByHand, showQuestions } from './state.ts'
import { StatusMessage } from './status-message.ts'
import type { Trials } from './trials.ts'
import type { TroubledRun } from './trouble.ts'
import { leave, mayRun, releaseAfter } from './trouble.ts'

export interface RunHost {
  readonly app: AppServices
  readonly store: TaskStore
  readonly underway: Underway<Pass>
  readonly maxJournalBytes: number
  /** The time limit of a pass, unless the tool declares one. */
  readonly timeoutMs: number
  readonly eventTokens: EventTokens
  /** Where events are posted, without the token. */
  readonly eventsUrl: string | undefined
  /** How long the journal of a task that failed is kept. 0: not at all. */
  readonly keepFailedMs: number
  /** The name of this worker, for operations. */
  readonly worker: string
  readonly trials: Trials
  /** True if this run must hand its task over at its next step. */
  readonly draining: (run: TaskRun) => boolean
  /** Waits until this is the only run of the instance, which then claims nothing for one lease. Returns `false` if that takes too long. */
  readonly alone: (run: TroubledRun) => Promise<boolean>
  /** The run has ended or has recorded something, so it is not on trial any more. */
  readonly endTrial: (run: TaskRun) => void
}

/** A shorter wait costs less than the claim of another pass. */
const RELEASE_FROM_MS = 1_000

export class TaskRun implements JournalWriter, TroubledRun {
  readonly task: ClaimedTask
  readonly host: RunHost
  /** What runs for the task runs here, and not in the context of the caller whose answer or event continues it. */
  readonly #context = new AsyncResource('RallyTask')
  readonly #cancel = new Cancel()
  readonly #status: StatusMessage
  readonly #lease: Lease
  #pass: RunningPass | undefined
  /** For observers. */
  #outcome: TaskEnd['outcome'] = 'released'
  readonly #inbox = new Inbox()
  /** How many passes there were before this one. */
  #passes = 0
  #history: TaskHistory | undefined
  #observers: Observers | undefined
  /** The questions that the pass has shown, without those that it was given an answer to since. */
  #open = new Map<string, ShownQuestion>()

  constructor(task: ClaimedTask, host: RunHost) {
    this.task = task
    this.host = host
    this.#lease = new Lease(task, host.store, host.app.now)
    this.#status = new StatusMessage(task.message, () => this.#writeStatus())
  }

  get state(): TaskFlowState {
    return this.#lease.state
  }

  /** Resolves when the worker no longer holds the task. Never rejects. */
  run(): Promise<void> {
    const { observers } = this.host.app
    return this.#context.runInAsyncScope(() => (observers === undefined ? this.#run() : this.#runObserved(observers)))
  }

  get lease(): TaskLease {
    const { id, fence } = this.task
    return { id, fence }
  }

  /** Stops the pass: another worker has the task, or the task has ended. */
  stop(): void {
    this.#cancel.cancel()
  }

  /** Reads the task again if it has a newer version, and offers new answers to the pass. */
  look(version: number): void {
    if (version > this.#lease.version) void this.#context.runInAsyncScope(() => this.#look(version))
  }

  async persist(journal: Journal, waits?: ReadonlyMap<string, Wait>): Promise<void> {
    const pending = journal.takePending()
    if (pending === undefined) return
    try {
      if (waits !== undefined || 'all' in pending) await this.#rewrite(journal.text(), waits)
      else await this.#lease.append(pending.entries)
      this.host.endTrial(this)
    } catch (error) {
      throw error instanceof LeaseLost ? error : new StoreFault(error)
    }
  }

  get knownAt(): number {
    return this.#lease.knownAt
  }

  async refresh(): Promise<void> {
    try {
      await this.#lease.refresh()
    } catch (error) {
      throw error instanceof LeaseLost ? error : new StoreFault(error)
    }
    this.#offerAnswers()
  }

  #rewrite(journal: string, waits: ReadonlyMap<string, Wait> | undefined): Promise<void> {
    const due = waits === undefined ? undefined : writeWaits(waits)
    return this.change((state) => {
      if (due !== undefined) state.waits = due
      return { journal }
    })
  }

  show(questions: ReadonlyMap<string, ShownQuestion>, waits: ReadonlyMap<string, Wait> | undefined): void {
    this.#open = new Map(questions)
    const due = waits === undefined ? undefined : writeWaits(waits)
    const { journal, flowState } = this.#pass?.input ?? {}
    // A changed question may have removed answers from the journal. It is shown in the same write that removes them.
    const removed = journal?.takePending() === undefined ? {} : { journal: journal.text() }
    this.change(
      (state) => {
        showQuestions(state, this.#open, flowState?.open)
        if (due !== undefined) state.waits = due
        return { ...removed, status: statusOf(state) }
      },
      // These questions are asked again, so their answers were not valid.
      () => this.#inbox.deliveredKeys.filter((key) => this.#open.has(key)),
    ).catch((error: unknown) => this.#failPass(error))
  }

  async #runObserved(observers: Observers): Promise<void> {
    const observed = this.#observed()
    if (observed === undefined) return this.#run()
    const begun = observers.task(observed)
    await begun.run(() => this.#run())
    begun.end({ outcome: this.#outcome })
  }

  /** `undefined` if the record cannot be read, which the run meets and reports. */
  #observed(): ObservedTask | undefined {
    try {
      const { tool, flowId, source } = JSON.parse(this.task.request) as TaskRequest
      const { trace } = flowStateOf(this.#lease.state)
      const flow = flowDigest(flowId)
      return { tool, task: this.digest, flow, lost: this.task.lost, caller: source?.caller, trace }
    } catch {
      return undefined
    }
  }

  async #run(): Promise<void> {
    try {
      const request = JSON.parse(this.task.request) as TaskRequest
      const journal = Journal.read(this.task.journal)
      this.#beginHistory(request, journal)
      if (!(await mayRun(this, request.tool))) return
      const tool = this.host.app.registry.tools.get(request.tool)
      if (tool === undefined) return await leave(this, `This instance has no tool "${request.tool}".`)
      await this.#runPasses(tool, request, journal)
    } catch (error) {
      if (error instanceof LeaseLost) this.#outcome = 'lost'
      else await releaseAfter(this, error)
    } finally {
      this.#status.stop()
      this.host.endTrial(this)
    }
  }

  #beginHistory({ startedAt, flowId }: TaskRequest, journal: Journal): void {
    const { app, worker } = this.host
    const { lost, lostWorker } = this.task
    const receivedAt = (key: string): number | undefined => this.#inbox.receivedAt(key)
    const referenceOf = app.showErrors ? undefined : (key: string) => failureReference(flowId, key)
    const history = new TaskHistory(this.#lease.state.history, app.now, receivedAt, referenceOf)
    history.claimed(worker, lost ? (readClaimNote(lostWorker) ?? 'unknown') : undefined)
    history.addEntries(journal, startedAt)
    this.#history = history
    this.#observers = (app.observers ?? new Observers([], new ObserverLog(app.logger))).with(history)
  }

  async #look(version: number): Promise<void> {
    try {
      await this.#lease.catchUp(version)
      this.#offerAnswers()
    } catch (error) {
      // The next write meets any other error again.
      if (error instanceof LeaseLost) this.stop()
    }
  }

  async #runPasses(tool: RegisteredTool, request: TaskRequest, journal: Journal): Promise<void> {
    const { state } = this.#lease
    const saved = { version: state.version, journal, flowState: flowStateOf(state) }
    let from: SavedFlow
    try {
      from = resumable(tool, saved)
    } catch (error) {
      if (error instanceof VersionChanged) return leave(this, error.message)
      throw error
    }
    if (from !== saved) await this.#saveForVersion(from)
    for (let next: SavedFlow | undefined = from; next !== undefined;) {
      next = await runTarget(tool, request.args, this.#carrier(tool, request, next))
    }
  }

  /** Its outcomes are where the next pass starts, or `undefined` when the worker no longer holds the task. */
  #carrier(tool: RegisteredTool, request: TaskRequest, from: SavedFlow): Carrier<SavedFlow | undefined> {
    const { app, underway, maxJournalBytes, timeoutMs } = this.host
    const { flowId, startedAt, round, revision, declared, can } = request
    const { journal, flowState } = from
    const { state } = this.#lease
    // A journal with entries is from a pass, also if that was lost before it was counted.
    const passes = Math.max(state.passes, journal.length > 0 && !hasAnswersOfCall(state) ? 1 : 0)
    this.#passes = passes
    this.#inbox.begin()
    const answers = this.#inbox.take(state)
    const source = sourceIn(request)
    this.#open = new Map()
    return {
      host: app,
      observers: this.#observers,
      kind: 'store',
      flow: {
        id: flowId,
        startedAt,
        round: round + passes,
        taskId: this.task.id,
        revision,
        declared: (capability) => hasCapability(declared, capability),
      },
      journal,
      flowState,
      answers,
      receivedAt: (key) => this.#inbox.receivedAt(key),
      source,
      maxJournalBytes,
      timeoutMs,
      waiting: this.#waitLimits(),
      underway,
      cancel: this.#cancel,
      progress: this.#status.progress,
      journalWriter: this,
      events: this.#eventsOf(flowId),
      can: (capability) => hasCapability(can, capability),
      wantsHandover: () => this.host.draining(this),
      started: (pass) => {
        this.#pass = pass
      },
      suspended: (outcome) => this.#suspended(outcome),
      ended: (outcome) =>
        this.#ended(tool, outcome, { id: flowId, round: round + passes, taskId: this.task.id }, source),
      cancelled: () => {
        this.#pass = undefined
        this.#outcome = 'lost'
        return undefined
      },
    }
  }

  /** Of a task that has lived for some time. */
  #waitLimits(): WaitLimits {
    const { ttlMs, createdAt } = this.task
    const limits = waitLimits(ttlMs)
    const endsAt = createdAt + (ttlMs ?? Infinity)
    // The store gave out a task that lives. If our clock says that it does not, the clocks differ, and nobody knows what is left.
    return endsAt > this.host.app.now() ? { ...limits, endsAt } : limits
  }

  async #ended(
    tool: RegisteredTool,
    outcome: Ending,
    flow: FailurePlace['flow'],
    source: CallSource,
  ): Promise<undefined> {
    this.#pass = undefined
    if (outcome.kind === 'failed') {
      const { error } = outcome
      if (error instanceof LeaseLost || error instanceof StoreFault) throw error
      // The store of a step that runs once.
      if (error instanceof StoreUnavailable) throw new StoreFault(error)
      if (isInterrupted(error)) return this.#release()
    }
    const ending = await endingOf(tool, outcome, {
      host: this.host.app,
      flow,
      source,
    })
    const { keepFailedMs } = this.host
    const fails = hasFailed(ending, outcome)
    let status: { message?: string } | undefined
    await this.#lease.end((state) => {
      status ??= this.#status.take()
      this.#writeHistory(state, ending)
      const written = fails ? writeFailure(state, ending, outcome, keepFailedMs) : writeSuccess(state, ending)
      return { ...status, ...written }
    })
    this.#outcome = fails ? 'failed' : 'completed'
    return undefined
  }

  async #suspended(outcome: Suspension): Promise<SavedFlow | undefined> {
    this.#pass = undefined
    switch (outcome.kind) {
      case 'asks':
      case 'waiting':
        return (await this.#park(outcome)) ? undefined : this.#next(outcome)
      case 'deferred':
        await this.#save(outcome, (state) => {
          showQuestions(state, new Map())
          // Not draining: a by-hand handler asked to run again, so wait one poll interval.
          return { status: 'working', release: true, dueMs: this.host.draining(this) ? 0 : this.task.pollMs }
        })
        return undefined
      case 'detached':
        return undefined
    }
  }

  /** How long the store keeps the task until its next pass. */
  #dueMs(dueAt: number): number {
    return Math.max(0, Math.ceil(dueAt - this.host.app.now()))
  }

  /**
   * Releases the task until an answer or an event comes, or until it is due. Returns `false` if one has come already: then the run
   * continues.
   */
  async #park(outcome: Suspension & { kind: 'asks' | 'waiting' }): Promise<boolean> {
    const asks = outcome.kind === 'asks'
    const shown = asks ? shownIn(outcome) : new Map<string, ShownQuestion>()
    let parked = true
    await this.#save(outcome, (state) => {
      const hasNews = (asks && Object.keys(state.answers).length > 0) || this.#inbox.hasAwaited(state)
      const draining = asks && this.host.draining(this)
      showQuestions(state, shown)
      parked = !hasNews || draining || (isByHand(state) && Object.keys(state.shown).length > 0)
      // Draining: another instance continues at once with whatever does not depend on an open question.
      const dueMs = draining ? 0 : outcome.dueAt === undefined ? null : this.#dueMs(outcome.dueAt)
      return { status: statusOf(state), ...(parked && { release: true, dueMs }) }
    })
    return parked
  }

  #next({ journal, flowState }: Suspension): SavedFlow {
    const { state } = this.#lease
    for (const [key, { open }] of Object.entries(state.answers)) if (open !== undefined) flowState.open.set(key, open)
    return { version: state.version, journal: Journal.read(journal.text()), flowState }
  }

  /** Writes what the pass leaves for the next one. That includes the effect of every answer that the pass was given. */
  async #save({ journal, flowState }: Suspension, make: (state: TaskFlowState) => TaskChange): Promise<void> {
    const kept = journal.takePending() === undefined ? {} : { journal: journal.text() }
    await this.change(
      (state) => {
        state.carry = writeFlowState(flowState)
        delete state.waits
        this.#inbox.markEvents(state)
        state.passes = this.#passes + 1
        delete state.losses
        delete state.retries
        delete state.left
        return { ...kept, ...make(state) }
      },
      () => this.#inbox.deliveredKeys,
    )
  }

  #saveForVersion({ version, journal, flowState }: SavedFlow): Promise<void> {
    return this.change((state) => {
      state.version = version
      state.carry = writeFlowState(flowState)
      return { journal: journal.text() }
    })
  }

  /** Another worker may claim the task at once. */
  async #release(): Promise<undefined> {
    await this.change(() => ({ release: true, dueMs: 0 }))
    return undefined
  }

  /** The id is a secret of the caller, so logs have a digest of it. */
  get digest(): string {
    return flowDigest(this.task.id)
  }

  #eventsOf(flowId: string): EventSource {
    const { eventTokens, eventsUrl } = this.host
    return {
      mint: (key, dueAt) => eventTokens.mint({ taskId: this.task.id, flowId, key, dueAt }),
      urlOf: (token) => (eventsUrl === undefined ? undefined : `${eventsUrl}/${token}`),
      take: (key) => this.#inbox.takeEvent(this.#lease.state, key),
      refuse: (key) => {
        const given = this.#inbox.givenEvent(key)
        const refuse = (state: TaskFlowState): TaskChange => {
          this.#inbox.refuseEvent(state, key, given)
          return {}
        }
        this.change(refuse).catch((error: unknown) => this.#failPass(error))
      },
    }
  }

  #failPass(error: unknown): void {
    void this.#pass?.fail(error instanceof LeaseLost ? error : new StoreFault(error))
  }

  #writeStatus(): void {
    this.change(() => ({})).catch((error: unknown) => this.#failPass(error))
  }

  /** Changes the latest state, including what others wrote meanwhile, and removes the answers of these keys from it. */
  change(make: (state: TaskFlowState) => TaskChange, usedKeys: () => readonly string[] = noKeys): Promise<void> {
    let status: { message?: string } | undefined
    let used: readonly string[] = []
    return this.#lease.change(
      (state) => {
        status ??= this.#status.take()
        used = usedKeys()
        for (const key of used) delete state.answers[key]
        const change = make(state)
        this.#writeHistory(state, change)
        if (change.status !== 'failed') return { ...status, ...change }
        this.#outcome = 'failed'
        return { ...status, ...change, ...giveUp(state, this.host.keepFailedMs) }
      },
      (isNewer) => {
        this.#inbox.used(used)
        // No event may ever announce what others wrote, so look at it now.
        if (isNewer) this.#offerAnswers()
      },
    )
  }

  #writeHistory(state: TaskFlowState, { release, status }: TaskChange): void {
    const history = this.#history
    if (history === undefined) return
    if (state.events !== undefined) history.eventsCame(state.events)
    if (status !== undefined && isEnd(status)) history.released('ended')
    else if (release === true) history.released('released')
    state.history = history.write()
  }

  /** Gives new answers to the pass that runs. */
  #offerAnswers(): void {
    if (this.#pass === undefined || this.#pass.ended) return
    const { state } = this.#lease
    if (isByHand(state)) return
    const answers = this.#inbox.take(state)
    for (const key of Object.keys(answers)) this.#open.delete(key)
    this.#pass.offer(answers, this.#inbox.takeAwaited(state))
  }
}

/** A task of an earlier release did not store it. */
function sourceIn({ source, revision, declared }: TaskRequest): CallSource {
  if (source !== undefined) return { ...source, caller: source.caller }
  const client = {
    name: undefined,
    version: undefined,
    revision,
    capabilities: capabilitiesOf(declared),
    extensions: {},
  }
  return { caller: undefined, client, meta: {} }
}

/** True if some answers came with the call itself. They are for the questions of the first pass, however often that is started. */
function hasAnswersOfCall(state: TaskFlowState): boolean {
  return Object.values(state.answers).some(({ open }) => open === undefined)
}

function shownIn({ questions, flowState }: Suspension & { kind: 'asks' }): Map<string, ShownQuestion> {
  const shown = new Map<string, ShownQuestion>()
  for (const [key, text] of questions) {
    const { pin = '', asked = 1 } = flowState.open.get(key) ?? {}
    shown.set(key, { pin, asked, text })
  }
  return shown
}

function statusOf(state: TaskFlowState): 'input_required' | 'working' {
  return Object.keys(state.shown).length > 0 ? 'input_required' : 'working'
}

function noKeys(): readonly string[] {
  return []
}

/** Of a new task: the store deletes it at the end of its ttl, whatever it waits for. */
export function waitLimits(ttlMs: number | null): WaitLimits {
  const mostMs = ttlMs ?? Infinity
  const advice = 'The task is deleted before that: raise `tasks.ttlMs`, or wait less.'
  return { releaseFromMs: RELEASE_FROM_MS, sleepMs: mostMs, askMs: mostMs, advice }
}
