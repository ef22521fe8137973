// One task in the hands of one worker: passes, until it is done or has nothing left to do but wait.
//
// 1. What settles is in the store before the handler hears of it.
// 2. Every write carries the claim's fence. A worker that has lost its claim writes nothing and stops.
// 3. What is written of the questions and answers stands on the version that was read: an answer that comes meanwhile is never lost.
import type { Answers } from '../flow/answering.ts'
import { Cancel } from '../flow/cancel.ts'
import type { Carry } from '../flow/carry.ts'
import { carryOver, writeCarry } from '../flow/carry.ts'
import { FlowError } from '../flow/errors.ts'
import { startPass } from '../flow/io.ts'
import { Journal } from '../flow/journal.ts'
import type { Keeper, ShownQuestion } from '../flow/keeper.ts'
import type { Outcome } from '../flow/pass.ts'
import { Pass } from '../flow/pass.ts'
import type { Underway } from '../flow/underway.ts'
import { INTERNAL_ERROR, ProtocolError } from '../protocol/errors.ts'
import { hasCapability } from '../server/capabilities.ts'
import type { DispatchHost } from '../server/context.ts'
import { errorText } from '../server/reply.ts'
import type { RegisteredTool } from '../server/tool.ts'
import { versionChanged } from '../server/round.ts'
import { Message } from './message.ts'
import type { TaskRequest, TaskState } from './record.ts'
import { carryOf, expose, isByHand, readState, writeState } from './record.ts'
import type { ClaimedTask, TaskChange, TaskStore } from './store.ts'

export interface RunHost {
  readonly app: DispatchHost
  readonly store: TaskStore
  readonly underway: Underway<Pass>
  readonly maxJournalBytes: number
  readonly draining: () => boolean
}

/** How often a worker may be lost, or find nobody that knows the tool, without that anything new was recorded. */
const MOST_LOSSES = 5
const FIRST_BACK_OFF_MS = 500
const LONGEST_BACK_OFF_MS = 30_000
/** Longer than any timer. */
const LONGEST_PASS_MS = 2_147_483_647

/** Another worker has the task, or it is over. */
class Lost extends Error {}

export class TaskRun implements Keeper {
  readonly task: ClaimedTask
  readonly #host: RunHost
  readonly #request: TaskRequest
  readonly #cancel = new Cancel()
  readonly #message: Message
  #pass: Pass | undefined
  #version: number
  #stateText: string
  /** Answers that a pass has been given, and that the store still holds. */
  readonly #used = new Set<string>()
  /** Writes follow each other: each stands on the version that the one before made. */
  #writing: Promise<unknown> = Promise.resolve()

  constructor(task: ClaimedTask, host: RunHost) {
    this.task = task
    this.#host = host
    this.#request = JSON.parse(task.request) as TaskRequest
    this.#version = task.version
    this.#stateText = task.state
    this.#message = new Message(() => this.#writeSoon())
  }

  /** Resolves once the worker is through with the task. Never rejects. */
  async run(): Promise<void> {
    try {
      if (this.task.lost && (await this.#countLoss())) return
      const tool = this.#host.app.registry.tools.get(this.#request.tool)
      if (tool === undefined) return await this.#wait(`No tool "${this.#request.tool}" is there.`)
      await this.#passes(tool)
    } catch (error) {
      if (!(error instanceof Lost)) await this.#letGoAfter(error)
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
    if (version <= this.#version) return
    const adopt = async (): Promise<void> => {
      // It may have been our own change that we heard of.
      if (version > this.#version) await this.#adopt()
    }
    this.#next(adopt).then(
      () => this.#offer(),
      (error: unknown) => {
        if (error instanceof Lost) this.stop()
      },
    )
  }

  async keep(journal: Journal): Promise<void> {
    const unkept = journal.takeUnkept()
    if (unkept === undefined) return
    try {
      if ('all' in unkept) await this.#change(() => ({ journal: unkept.all }))
      else if (!(await this.#host.store.append(this.task, unkept.entries))) throw new Lost()
    } catch (error) {
      throw error instanceof Lost ? error : new StoreFault(error)
    }
  }

  show(questions: ReadonlyMap<string, ShownQuestion>): void {
    this.#change((state) => {
      expose(state, questions)
      return { status: statusOf(state) }
    }).catch((error: unknown) => this.#fault(error))
  }

  async #passes(tool: RegisteredTool): Promise<void> {
    let state = readState(this.#stateText)
    let journal = Journal.read(this.task.journal)
    let carry = carryOf(state)
    if (state.version !== tool.version) {
      if (journal.hasEffects()) return this.#wait(versionChanged(tool, state.version).message)
      carry = carryOver(journal, carry)
      journal = Journal.empty()
      await this.#change((latest) => {
        latest.version = tool.version
        latest.carry = writeCarry(carry)
        return { journal: journal.text() }
      })
    }
    for (;;) {
      const outcome = await this.#takePass(tool, journal, carry, state)
      if (await this.#conclude(tool, outcome)) return
      // What it waits for has come already.
      if (outcome.kind !== 'asks') return
      state = readState(this.#stateText)
      journal = Journal.read(outcome.journal.text())
      carry = outcome.carry
      for (const [key, { open }] of Object.entries(state.answers)) if (open !== undefined) carry.open.set(key, open)
    }
  }

  #takePass(tool: RegisteredTool, journal: Journal, carry: Carry, state: TaskState): Promise<Outcome> {
    const { app, underway, maxJournalBytes, draining } = this.#host
    const { flowId, startedAt, round, revision, declared, can, args } = this.#request
    const answers: Record<string, Record<string, unknown>> = {}
    for (const [key, { raw }] of Object.entries(state.answers)) {
      answers[key] = raw
      this.#used.add(key)
    }
    return new Promise((finish) => {
      this.#pass = new Pass(
        {
          flow: {
            id: flowId,
            startedAt,
            round: round + Math.max(state.passes, journal.length > 0 ? 1 : 0),
            revision,
            declared: (capability) => hasCapability(declared, capability),
          },
          journal,
          carry,
          answers,
          forms: tool.forms,
          can: (capability) => hasCapability(can, capability),
          limits: { journalBytes: maxJournalBytes, passMs: tool.timeoutMs ?? LONGEST_PASS_MS },
          logger: app.logger,
          progress: this.#message.progress,
          keeper: this,
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
        await this.#end(await this.#ending(tool, () => tool.resultText(outcome.value, this.#host.app)))
        return true
      case 'failed':
        if (outcome.error instanceof Lost || outcome.error instanceof StoreFault) throw outcome.error
        if (isInterruption(outcome.error)) {
          await this.#change(() => ({ letGo: true, dueMs: 0 }))
          return true
        }
        await this.#end(await this.#ending(tool, () => tool.failureText(outcome.error, this.#host.app)))
        return true
      case 'cancelled':
      case 'detached':
        return true
      case 'deferred':
        await this.#change((state) => {
          expose(state, new Map())
          return { ...carriedOn(state, outcome), status: 'working', letGo: true, dueMs: 0 }
        })
        return true
      case 'asks':
        return this.#park(outcome)
    }
  }

  /** `false` where it need not wait: what it asked for has been answered meanwhile. */
  async #park(outcome: Outcome & { kind: 'asks' }): Promise<boolean> {
    let parked = true
    await this.#change((state) => {
      const change = carriedOn(state, outcome)
      const answered = Object.keys(state.answers).length > 0
      expose(state, shownOf(outcome))
      parked = !answered || (isByHand(state) && Object.keys(state.shown).length > 0)
      return { ...change, status: statusOf(state), ...(parked && { letGo: true, dueMs: null }) }
    })
    return parked
  }

  /** What the task comes to. A value that cannot be told is a failure like any other. */
  async #ending(tool: RegisteredTool, text: () => string | Promise<string>): Promise<TaskChange> {
    try {
      return { status: 'completed', outcome: await text() }
    } catch (error) {
      try {
        return { status: 'completed', outcome: tool.failureText(error, this.#host.app) }
      } catch (told) {
        return failed(told)
      }
    }
  }

  #end(ending: TaskChange): Promise<void> {
    return this.#change(() => ending)
  }

  /** Whether that was once too often. */
  async #countLoss(): Promise<boolean> {
    let count = 0
    await this.#change((state) => {
      const bytes = this.task.journal.length
      count = state.losses?.bytes === bytes ? state.losses.count + 1 : 1
      if (count > MOST_LOSSES) return failed(new ProtocolError(INTERNAL_ERROR, 'The workers of this task were lost.'))
      state.losses = { bytes, count }
      return {}
    })
    return count > MOST_LOSSES
  }

  /** Another instance may be able to go on with it; but not for ever. */
  async #wait(why: string): Promise<void> {
    this.#host.app.logger.warn(`A task cannot go on here. ${why}`, { task: this.task.id })
    await this.#change((state) => {
      const bytes = this.task.journal.length
      const count = state.losses?.bytes === bytes ? state.losses.count + 1 : 1
      if (count > MOST_LOSSES * 2) return failed(new ProtocolError(INTERNAL_ERROR, `This cannot go on. ${why}`))
      state.losses = { bytes, count }
      return { letGo: true, dueMs: backOff(count) }
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
    void this.#pass?.fail(error instanceof Lost ? error : new StoreFault(error))
  }

  #writeSoon(): void {
    this.#change(() => ({})).catch((error: unknown) => this.#fault(error))
  }

  /** Changes the state as it stands now, whatever came in meanwhile. */
  #change(make: (state: TaskState) => TaskChange): Promise<void> {
    return this.#next(async () => {
      const message = this.#message.take()
      for (;;) {
        const state = readState(this.#stateText)
        const used = [...this.#used]
        for (const key of used) delete state.answers[key]
        const change = { ...message, ...make(state) }
        const text = writeState(state)
        const belief = { fence: this.task.fence, version: this.#version }
        const version = await this.#host.store.change(this.task.id, belief, { ...change, state: text })
        if (version !== undefined) {
          this.#version = version
          this.#stateText = text
          for (const key of used) this.#used.delete(key)
          return
        }
        await this.#adopt()
      }
    })
  }

  /** Only answers come in between: whatever else has changed, the task is not ours any more. */
  async #adopt(): Promise<void> {
    const record = await this.#host.store.read(this.task.id)
    const isOver = record?.status !== 'working' && record?.status !== 'input_required'
    if (record === undefined || isOver || record.version === this.#version) throw new Lost()
    this.#version = record.version
    this.#stateText = record.state
  }

  #offer(): void {
    const state = readState(this.#stateText)
    if (this.#pass === undefined || isByHand(state)) return
    const answers: Record<string, Record<string, unknown>> = {}
    for (const [key, { raw }] of Object.entries(state.answers)) {
      if (this.#used.has(key)) continue
      answers[key] = raw
      this.#used.add(key)
    }
    this.#pass.offer(answers satisfies Answers)
  }

  #next<T>(write: () => Promise<T>): Promise<T> {
    const done = this.#writing.then(write)
    this.#writing = done.catch(() => {})
    return done
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

function carriedOn(state: TaskState, { journal, carry }: { journal: Journal; carry: Carry }): TaskChange {
  state.carry = writeCarry(carry)
  state.passes += 1
  delete state.losses
  const unkept = journal.takeUnkept()
  return unkept === undefined ? {} : { journal: journal.text() }
}

function shownOf({ questions, carry }: Outcome & { kind: 'asks' }): Map<string, ShownQuestion> {
  const shown = new Map<string, ShownQuestion>()
  for (const [key, text] of questions) {
    const { pin = '', asked = 1 } = carry.open.get(key) ?? {}
    shown.set(key, { pin, asked, text })
  }
  return shown
}

function statusOf(state: TaskState): 'input_required' | 'working' {
  return Object.keys(state.shown).length > 0 ? 'input_required' : 'working'
}

function failed(error: unknown): TaskChange {
  const told = error instanceof ProtocolError ? error : new ProtocolError(INTERNAL_ERROR, 'Internal error')
  return { status: 'failed', outcome: errorText(told), message: told.message }
}

function backOff(count: number): number {
  return Math.min(FIRST_BACK_OFF_MS * 2 ** (count - 1), LONGEST_BACK_OFF_MS) * (0.75 + Math.random() / 2)
}
