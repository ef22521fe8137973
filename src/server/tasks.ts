// What the server knows of tasks. The room `tasks/` implements it.
import type { Answers } from '../flow/answering.ts'
import type { Caller, CallSource } from '../flow/caller.ts'
import type { WaitLimits } from '../flow/carrier.ts'
import type { DetailedTask } from '../protocol/messages.ts'
import type { Claims } from '../seal/claims.ts'
import type { RequestInfo } from './request.ts'

/** When a call of a tool becomes a task. */
export type TaskMode =
  /** From the start. A client that does not support tasks cannot call the tool. */
  | 'always'
  /** From the start if the client supports tasks. Otherwise it is a plain call. */
  | 'optional'
  /** Never, even if its handler calls `io.detach()`. */
  | 'never'

/** When a call becomes a task, and how many of a tool's tasks run at a time. */
export interface ToolTaskOptions<Args> {
  /** Default: when the handler calls `io.detach()`. */
  mode?: TaskMode
  /** Default: as many as the instances have places for. */
  concurrency?: TaskConcurrency<Args>
}

/**
 * How many tasks of one key run at a time, on all instances together. The others wait for their turn. A task that waits, for an answer,
 * an event or a time, does not count.
 */
export interface TaskConcurrency<Args> {
  /** How many of the tasks run at a time, in all instances together. */
  limit: number
  /**
   * Called when the call becomes a task. Tasks for which it returns the same text count together. With `undefined`, a task does not
   * count and never waits. Default: all tasks of the tool count together.
   */
  key?: (call: { readonly caller: Caller | undefined; readonly args: Args }) => string | undefined
}

/** Limits and times of tasks. */
export interface TasksOptions {
  /** How long a task is stored after its creation, in milliseconds. `null` stores it for ever. Default 86 400 000 (one day). */
  ttlMs?: number | null
  /** How often clients should poll a task, in milliseconds. Default 1 000. */
  pollMs?: number
  /**
   * How long a worker's lease lasts, in milliseconds. A worker renews its leases every third of that. When an instance dies, other
   * instances take over its tasks after this time. Default 15 000.
   */
  leaseMs?: number
  /** How many tasks this instance runs at a time. 0 leaves all tasks to other instances. Default 32. */
  concurrency?: number
  /** The largest journal of a task, in bytes. Default 1 048 576. */
  maxJournalBytes?: number
  /**
   * How long one pass of a task may take, in milliseconds. The time that it waits for answers is not counted. A tool's own `timeoutMs`
   * takes precedence. Default 3 600 000 (one hour).
   */
  timeoutMs?: number
  /**
   * Ends the process (SIGKILL) when its event loop is blocked for so many milliseconds while it runs tasks: no other instance is held up,
   * and a supervisor starts it again. A thread watches, from the first task on. `false` or 0 turns it off. Default: two leases, and
   * 10 000 at least.
   */
  watchdogMs?: number | false
  /**
   * Where others POST events for `io.event()`, without the token, such as `https://tools.example.com/events`. The hosts of this app
   * serve every path that ends in `/events/<token>`. Default: events have no `url`, only a `token`.
   */
  eventsUrl?: string
  /**
   * How long a task that ended in error or was given up is kept with its journal, in milliseconds from its end, so that `app.tasks.retry`
   * can continue it. It is kept longer than its ttl if need be. 0 deletes the journal when the task ends. Default 259 200 000 (three days).
   */
  keepFailedMs?: number
  /** The name of this instance in the timelines of tasks. Default: the host name and the process id. */
  worker?: string
}

/** A flow that becomes a task, and the request in which it does. */
export interface TaskStart {
  readonly tool: string
  readonly args: Record<string, unknown>
  readonly source: CallSource
  readonly info: RequestInfo
  readonly claims: Claims
  /** The answers that came with the call, if nothing has been asked yet. */
  readonly answers: Answers | undefined
}

/** How far a task is, as its handler said last. */
export interface TaskProgress {
  readonly progress: number
  readonly total?: number
  readonly message?: string
}

/** A task, and how far it is. */
export interface FollowedTask extends DetailedTask {
  readonly progress?: TaskProgress
}

/** `repeated`: an event has come before, and that one counts. */
export type SignalOutcome = 'accepted' | 'repeated'

/** A page of tasks, the oldest first. Of a result, a listed task has only `isError`. */
export interface TaskPage {
  readonly tasks: readonly DetailedTask[]
  readonly nextCursor?: string
}

/** What a pass of a task may take. */
export interface TaskLimits {
  readonly maxJournalBytes: number
  readonly timeoutMs: number
  readonly waiting: WaitLimits
}

/**
 * Tasks as clients see them. A method whose name ends in `Text`, and `serve`, return JSON text for the wire of 2026-07-28. The
 * others return values, for sessions that write them in the words of their own revision.
 *
 * `get`, `update` and `cancel` reject with an invalid-params error if the caller has no task of this id.
 */
export interface Tasks {
  readonly limits: TaskLimits
  /** Stores the flow as a task. */
  create(start: TaskStart): Promise<DetailedTask>
  /** Stores the flow as a task. Returns the text of the result that names it. */
  createText(start: TaskStart): Promise<string>
  /** Serves a request about a task. Returns the text of the result, or `undefined` if the method is unknown. */
  serve(
    method: string,
    params: Record<string, unknown>,
    info: RequestInfo,
    principal: string | undefined,
  ): Promise<string> | undefined
  get(taskId: unknown, principal: string | undefined): Promise<FollowedTask>
  /** Takes answers to the questions that the task shows. Ignores answers to other questions. */
  update(taskId: unknown, inputResponses: unknown, principal: string | undefined): Promise<void>
  /** Cancels the task, unless it has ended. */
  cancel(taskId: unknown, principal: string | undefined): Promise<void>
  /** Takes an event from outside. Throws EVENT_REFUSED or EVENT_MISMATCH. */
  signal(token: unknown, value: unknown): Promise<SignalOutcome>
  list(principal: string | undefined, cursor: unknown): Promise<TaskPage>
  /** Which of these tasks the caller owns. */
  own(ids: readonly string[], principal: string | undefined): Promise<string[]>
  /**
   * Calls `onTask` with the task as it is now and after every change, and `onGone` when it has outlived its ttl. Returns a function
   * that stops it.
   */
  follow(taskId: string, onTask: (task: FollowedTask) => void, onGone: () => void): () => void
  /** The same for many tasks, each as JSON text without the braces around it, and what belongs into its `_meta`. */
  followText(ids: readonly string[], onTask: (taskText: string, metaText: string) => void): () => void
  /** Resolves if the store answers, and rejects if it cannot be reached. */
  reachStore(): Promise<void>
  /** Starts working on tasks. A second call does nothing. */
  start(): void
  /** Claims no further task. Running tasks are handed over at their next step. */
  drain(): void
  /** Hands over the tasks that still run, at once. */
  interrupt(): void
  /** Resolves when this instance runs no task any more. */
  idle(): Promise<void>
}
