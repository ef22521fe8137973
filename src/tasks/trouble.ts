// A task that cannot simply run: its worker was lost, this instance does not have its tool, or the store failed.
import type { Backoff } from '../protocol/backoff.ts'
import { backoff } from '../protocol/backoff.ts'
import { INTERNAL_ERROR, ProtocolError } from '../protocol/errors.ts'
import type { Logger } from '../protocol/logger.ts'
import { logUnlessOutage } from '../store/outages.ts'
import type { ClaimedTask, TaskChange } from '../store/tasks.ts'
import { failedWith, StoreFault } from './ending.ts'
import type { TaskFlowState } from './state.ts'
import { countTry, lossesOf } from './state.ts'
import type { Trials } from './trials.ts'
import { MOST_LOSSES } from './trials.ts'

/** What is needed of the run. */
export interface TroubledRun {
  readonly task: ClaimedTask
  readonly state: TaskFlowState
  /** A digest of the task's id, for logs. */
  readonly digest: string
  readonly host: {
    readonly app: { readonly logger: Logger }
    readonly trials: Trials
    /** Waits until this is the only run of the instance, which then claims nothing for one lease. Returns `false` if that takes too long. */
    readonly alone: (run: TroubledRun) => Promise<boolean>
  }
  /** Changes the latest state. */
  change(make: (state: TaskFlowState) => TaskChange): Promise<void>
}

/**
 * How many times workers may fail to run the task before it fails, and how many times they may leave it to one that has the tool in
 * its version. Counted from the last journal entry. 120 take about an hour: a fleet is upgraded meanwhile, or rolled back.
 */
const MOST_TRIES = { retries: 10, left: 120 } as const
const RETRY: Backoff = { firstMs: 500, maxMs: 30_000, jitter: [0.75, 1.25] }

/** Returns `false` if the task has lost too many workers, or has to wait for a trial. */
export async function mayRun(run: TroubledRun, tool: string): Promise<boolean> {
  const losses = lossesOf(run.state, run.task.journal.length)
  if (run.task.lost && losses?.waits !== true) return continueAfterLoss(run, tool)
  return losses === undefined || beginTrial(run, losses.count)
}

/** Counts a worker that was lost. Returns `false` if the task has failed for that, or has to wait. */
async function continueAfterLoss(run: TroubledRun, tool: string): Promise<boolean> {
  const { app, trials } = run.host
  let losses = 0
  let continues = false
  await run.change((state) => {
    losses = (lossesOf(state, run.task.journal.length)?.count ?? 0) + 1
    const why = `The task failed: ${MOST_LOSSES} workers were lost while they ran it.`
    if (losses >= MOST_LOSSES) return failedWith(new ProtocolError(INTERNAL_ERROR, why))
    continues = losses === 1 && trials.begin(run)
    setLosses(run, state, losses, !continues)
    return continues ? {} : { release: true, dueMs: trials.waitAfterLoss(losses) }
  })
  const details = { task: run.digest, tool, losses }
  if (losses < MOST_LOSSES) app.logger.warn('A worker was lost while it ran a task; the task is tried again.', details)
  else app.logger.error('A task was given up: too many workers were lost while they ran it.', details)
  return continues
}

/** A task that was lost runs when it is its turn. Returns `false` if it has to wait. */
async function beginTrial(run: TroubledRun, losses: number): Promise<boolean> {
  const { trials, alone } = run.host
  const isLast = losses === MOST_LOSSES - 1
  const begins = isLast ? await alone(run) : trials.begin(run)
  await run.change((state) => {
    setLosses(run, state, losses, !begins)
    return begins ? {} : { release: true, dueMs: isLast ? trials.waitForAlone() : trials.waitForTrial() }
  })
  return begins
}

function setLosses({ task }: TroubledRun, state: TaskFlowState, count: number, waits: boolean): void {
  state.losses = { bytes: task.journal.length, count, ...(waits && { waits }) }
}

/** Releases the task, because another instance may be able to run it. */
export async function leave(run: TroubledRun, why: string): Promise<void> {
  run.host.app.logger.warn(`This instance cannot run a task. ${why}`, { task: run.digest })
  await retryLater(run, 'left', why)
}

/** Releases the task until the next retry. Fails it after too many. */
async function retryLater(run: TroubledRun, which: keyof typeof MOST_TRIES, why: string): Promise<void> {
  await run.change((state) => {
    const count = countTry(state, which, run.task.journal.length)
    if (count <= MOST_TRIES[which]) return { release: true, dueMs: backoff(count, RETRY) }
    return failedWith(new ProtocolError(INTERNAL_ERROR, `The task failed after ${MOST_TRIES[which]} retries. ${why}`))
  })
}

/** The store failed, or our own code did. */
export async function releaseAfter(run: TroubledRun, error: unknown): Promise<void> {
  const details = { task: run.digest, error: error instanceof StoreFault ? error.cause : error }
  logUnlessOutage(run.host.app.logger, 'Running a task failed; it will be retried.', details)
  try {
    await retryLater(run, 'retries', error instanceof StoreFault ? 'The store failed.' : 'An internal error occurred.')
  } catch {
    // The store cannot be reached: the lease expires, and another worker claims the task.
  }
}
