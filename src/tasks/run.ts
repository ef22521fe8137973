// One task in the hands of one worker: passes, until it is done or has nothing left to do but wait.
//
// 1. What settles is in the store before the handler hears of it.
// 2. Every write carries the claim's fence. A worker that has lost its claim writes nothing and stops.
// 3. What is written of the questions and answers stands on the version that was read: an answer that comes meanwhile is never lost.
// 4. An answer stays in the store until what became of it is there too: a record, a carry, or the question asked again.
import type { Answers } from '../flow/answering.ts'
import { Cancel } from '../protocol/cancel.ts'
import type { FlowState } from '../flow/flow-state.ts'
import { keepAnswers, writeFlowState } from '../flow/flow-state.ts'
import { FlowError } from '../flow/errors.ts'
import { startPass } from '../flow/io.ts'
import { Journal } from '../flow/journal.ts'
import type { ShownQuestion } from '../flow/flow-state.ts'
import type { JournalWriter, Outcome } from '../flow/carrier.ts'
import { Pass } from '../flow/pass.ts'
import type { Underway } from '../flow/underway.ts'
import { INTERNAL_ERROR, ProtocolError } from '../protocol/errors.ts'
import { hasCapability } from '../server/capabilities.ts'
import type { AppServices } from '../server/context.ts'
import type { RegisteredTool } from '../server/tool.ts'
import { versionChanged } from '../server/round.ts'
import { endingOf, failed } from './ending.ts'
import { Lease, LeaseLost } from './lease.ts'
import { Message } from './message.ts'
import type { TaskRequest, TaskFlowState } from './record.ts'
import { carryOf, countLoss, expose, isByHand } from './record.ts'
import type { ClaimedTask, TaskChange, TaskStore } from '../store/store.ts'

export interface RunHost {
  readonly app: AppServices
  readonly store: TaskStore
  readonly underway: Underway<Pass>
  readonly maxJournalBytes: number
  readonly draining: () => boolean
}

/** How often a worker may be lost, and how often one may find that it cannot go on, without that anything new was recorded. */
const MOST_LOSSES = 5
const MOST_TRIES = 10
const FIRST_BACK_OFF_MS = 500
const LONGEST_BACK_OFF_MS = 30_000
/** Longer than any timer. */
const LONGEST_PASS_MS = 2_147_483_647

export class TaskRun implements JournalWriter {
  readonly task: ClaimedTask
  readonly #host: RunHost
  readonly #cancel = new Cancel()
  readonly #message: Message
  readonly #hold: Lease
  #pass: Pass | undefined
  /** Keys of answers that a pass has been given, and that the store still holds. */
  readonly #given = new Set<string>()
  /** The questions that the pass has told us of, and that it has been given no answer to since. */
  #open = new Map<string, ShownQuestion>()

  constructor(task: ClaimedTask, host: RunHost) {
    this.task = task
    this.#host = host
    this.#hold = new Lease(task, host.store)
    this.#message = new Message(() => this.#writeSoon())
  }

  /** Resolves once the worker is through with the task. Never rejects. */
  async run(): Promise<void> {
    try {
      if (this.task.lost && (await this.#countLoss())) return
      const request = JSON.parse(this.task.request) as TaskRequest
      const tool = this.#host.app.registry.tools.get(request.tool)
      if (tool === undefined) return await this.#leave(`No tool "${request.tool}" is there.`)
      await this.#passes(tool, request)
    } catch (error) {
      if (!(error instanceof LeaseLost)) await this.#letGoAfter(error)
    } finally {
      this.#message.stop()
    }
  }

  /** The claim is another's, or the task is over. */
  stop(): void {
    this.#cancel.cancel()
  }

  /** Something may have come for it. */
  look(version: number): void {
    if (version <= this.#hold.version) return
    this.#hold
      .catchUp(version)
      .then(() => this.#offer())
      .catch((error: unknown) => {
        // Anything else is met again by whatever is written next.
        if (error instanceof LeaseLost) this.stop()
      })
  }

  async persist(journal: Journal): Promise<void> {
    const unkept = journal.takePending()
    if (unkept === undefined) return
    try {
      if ('all' in unkept) await this.#change(() => ({ journal: unkept.all }))
      else await this.#hold.append(unkept.entries)
    } catch (error) {
      throw error instanceof LeaseLost ? error : new StoreFault(error)
    }
  }

  show(questions: ReadonlyMap<string, ShownQuestion>): void {
    this.#open = new Map(questions)
    const { journal, flowState } = this.#pass?.input ?? {}
    // Answers that a changed question took out of the journal: the question must not be shown while they are still there.
    const unkept = journal?.takePending()
    const kept = unkept === undefined ? {} : { journal: journal?.text() ?? '[]' }
    this.#change(
      (state) => {
        expose(state, this.#open, flowState?.open)
        return { ...kept, status: statusOf(state) }
      },
      // Asked again, so what was given did not do.
      () => [...this.#given].filter((key) => this.#open.has(key)),
    ).catch((error: unknown) => this.#fault(error))
  }

  async #passes(tool: RegisteredTool, request: TaskRequest): Promise<void> {
    let { state } = this.#hold
    let journal = Journal.read(this.task.journal)
    let carry = carryOf(state)
    if (state.version !== tool.version) {
      if (journal.hasEffects()) return this.#leave(versionChanged(tool, state.version).message)
      carry = keepAnswers(journal, carry)
      journal = Journal.empty()
      await this.#change((latest) => {
        latest.version = tool.version
        latest.carry = writeFlowState(carry)
        return { journal: journal.text() }
      })
    }
    for (;;) {
      const outcome = await this.#takePass(tool, request, journal, carry, state)
      if (await this.#conclude(tool, outcome)) return
      // What it waits for has come already.
      if (outcome.kind !== 'asks') return
      ;({ state } = this.#hold)
      journal = Journal.read(outcome.journal.text())
      carry = outcome.flowState
      for (const [key, { open }] of Object.entries(state.answers)) if (open !== undefined) carry.open.set(key, open)
    }
  }

  #takePass(
    tool: RegisteredTool,
    request: TaskRequest,
    journal: Journal,
    carry: FlowState,
    state: TaskFlowState,
  ): Promise<Outcome> {
    const { app, underway, maxJournalBytes, draining } = this.#host
    const { flowId, startedAt, round, revision, declared, can, args } = request
    const answers = this.#give(state)
    this.#open = new Map()
    return new Promise((finish) => {
      this.#pass = new Pass(
        {
          flow: {
            id: flowId,
            startedAt,
            round: round + Math.max(state.passes, journal.length > 0 && !cameWithCall(state) ? 1 : 0),
            revision,
            declared: (capability) => hasCapability(declared, capability),
          },
          journal,
          flowState: carry,
          answers,
          forms: tool.forms,
          can: (capability) => hasCapability(can, capability),
          limits: { journalBytes: maxJournalBytes, passMs: tool.timeoutMs ?? LONGEST_PASS_MS },
          logger: app.logger,
          progress: this.#message.progress,
          journalWriter: this,
          wantsHandover: draining,
          underway,
          cancel: this.#cancel,
          strict: app.strict,
          now: app.now,
        },
        finish,
      )
      startPass(this.#pass, (io) => tool.run(args, io))
    })
  }

  /** Whether the worker is through with the task. */
  async #conclude(tool: RegisteredTool, outcome: Outcome): Promise<boolean> {
    this.#pass = undefined
    switch (outcome.kind) {
      case 'done':
        await this.#end(await endingOf(tool, this.#host.app, () => tool.resultText(outcome.value, this.#host.app)))
        return true
      case 'failed':
        if (outcome.error instanceof LeaseLost || outcome.error instanceof StoreFault) throw outcome.error
        if (isInterruption(outcome.error)) {
          await this.#change(() => ({ release: true, dueMs: 0 }))
          return true
        }
        await this.#end(await endingOf(tool, this.#host.app, () => tool.failureText(outcome.error, this.#host.app)))
        return true
      case 'cancelled':
      case 'detached':
        return true
      case 'deferred':
        await this.#carryOn(outcome, (state) => {
          expose(state, new Map())
          // Where nobody drains it is a wish by hand to be run again, and hardly at once.
          return { status: 'working', release: true, dueMs: this.#host.draining() ? 0 : this.task.pollMs }
        })
        return true
      case 'asks':
        return this.#park(outcome)
    }
  }

  /** `false` where it need not wait: what it asked for has been answered meanwhile. */
  async #park(outcome: Outcome & { kind: 'asks' }): Promise<boolean> {
    const shown = shownOf(outcome)
    let parked = true
    await this.#carryOn(outcome, (state) => {
      const answered = Object.keys(state.answers).length > 0
      const draining = this.#host.draining()
      expose(state, shown)
      parked = !answered || draining || (isByHand(state) && Object.keys(state.shown).length > 0)
      // On a drain somebody else goes on with what is beside the questions, or has been answered.
      return { status: statusOf(state), ...(parked && { release: true, dueMs: draining ? 0 : null }) }
    })
    return parked
  }

  /** Writes what the pass leaves for the next one, and with it what became of all the answers that it was given. */
  async #carryOn(
    { journal, flowState }: { journal: Journal; flowState: FlowState },
    make: (state: TaskFlowState) => TaskChange,
  ): Promise<void> {
    const kept = journal.takePending() === undefined ? {} : { journal: journal.text() }
    await this.#change(
      (state) => {
        state.carry = writeFlowState(flowState)
        state.passes += 1
        delete state.losses
        return { ...kept, ...make(state) }
      },
      () => [...this.#given],
    )
  }

  #end(ending: TaskChange): Promise<void> {
    return this.#hold.end(() => ({ ...this.#message.take(), ...ending }))
  }

  /** Whether that was once too often. */
  async #countLoss(): Promise<boolean> {
    let isTooOften = false
    await this.#change((state) => {
      isTooOften = countLoss(state, this.task.journal.length) > MOST_LOSSES
      return isTooOften ? failed(new ProtocolError(INTERNAL_ERROR, 'The workers of this task were lost.')) : {}
    })
    return isTooOften
  }

  /** Another instance may be able to go on with it. */
  async #leave(why: string): Promise<void> {
    this.#host.app.logger.warn(`A task cannot go on here. ${why}`, { task: this.task.id })
    await this.#wait(why)
  }

  /** It is tried again in a while; but not for ever. */
  async #wait(why: string): Promise<void> {
    await this.#change((state) => {
      const count = countLoss(state, this.task.journal.length)
      if (count > MOST_TRIES) return failed(new ProtocolError(INTERNAL_ERROR, `This cannot go on. ${why}`))
      return { release: true, dueMs: backOff(count) }
    })
  }

  /** The store failed, or our own code did: somebody tries again in a while, and counts that. */
  async #letGoAfter(error: unknown): Promise<void> {
    this.#host.app.logger.error('Working on a task failed; it is tried again.', { task: this.task.id, error })
    const why = error instanceof StoreFault ? 'The store failed.' : 'An internal error came up.'
    // Where the store cannot be reached at all, the lease runs out.
    try {
      await this.#wait(why)
    } catch {}
  }

  #fault(error: unknown): void {
    void this.#pass?.fail(error instanceof LeaseLost ? error : new StoreFault(error))
  }

  #writeSoon(): void {
    this.#change(() => ({})).catch((error: unknown) => this.#fault(error))
  }

  /** Changes the state as it stands then, whatever came in meanwhile, and drops the answers of these keys from it. */
  #change(make: (state: TaskFlowState) => TaskChange, spentThen: () => readonly string[] = nothing): Promise<void> {
    let message: { message?: string } | undefined
    let spent: readonly string[] = []
    return this.#hold.change(
      (state) => {
        message ??= this.#message.take()
        spent = spentThen()
        for (const key of spent) delete state.answers[key]
        return { ...message, ...make(state) }
      },
      (isNewer) => {
        for (const key of spent) this.#given.delete(key)
        // There may never be other news of it.
        if (isNewer) this.#offer()
      },
    )
  }

  /** To the pass that runs. */
  #offer(): void {
    const { state } = this.#hold
    if (this.#pass === undefined || this.#pass.ended || isByHand(state)) return
    this.#pass.offer(this.#give(state))
  }

  /** The answers that no pass has been given yet. */
  #give(state: TaskFlowState): Answers {
    const answers = Object.create(null) as Record<string, Record<string, unknown>>
    for (const [key, { raw }] of Object.entries(state.answers)) {
      if (this.#given.has(key)) continue
      answers[key] = raw
      this.#given.add(key)
      this.#open.delete(key)
    }
    return answers
  }
}

/** What went wrong in the store is nothing the handler or its client can mend. */
class StoreFault extends Error {
  constructor(cause: unknown) {
    super('The store failed.', { cause })
  }
}

/** The instance went down before its handler recorded anything. In a task that is a lost worker like any other. */
function isInterruption(error: unknown): boolean {
  return error instanceof FlowError && error.code === 'INTERRUPTED'
}

/** Whether there are answers that came with the call: they are for whatever its first pass asks, however often that is begun. */
function cameWithCall(state: TaskFlowState): boolean {
  return Object.values(state.answers).some(({ open }) => open === undefined)
}

function nothing(): readonly string[] {
  return []
}

function shownOf({ questions, flowState }: Outcome & { kind: 'asks' }): Map<string, ShownQuestion> {
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

function backOff(count: number): number {
  return Math.min(FIRST_BACK_OFF_MS * 2 ** (count - 1), LONGEST_BACK_OFF_MS) * (0.75 + Math.random() / 2)
}
