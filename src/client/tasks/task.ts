// A handle on a task: read its state, answer it, cancel it, wait for its result, or save it as JSON.
import type { CallToolResult, InputResponses } from '../../protocol/messages.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { shown } from '../../protocol/text.ts'
import type { CheckedAnswers } from '../answers/answering.ts'
import { readAnswers } from '../answers/answering.ts'
import type { ServerQuestion } from '../answers/question.ts'
import type { ClientCall } from '../call.ts'
import type { ClientContext } from '../context.ts'
import type { Deadline } from '../deadline.ts'
import { badResponse, ClientError, noTasks, wrongOption } from '../errors.ts'
import type { ProgressUpdate, TaskOptions } from '../options.ts'
import { checkLimit } from '../options.ts'
import type { SavedTask } from '../saved.ts'
import { TaskAnswers } from './answers.ts'
import type { TaskRequests } from './requests.ts'
import { isTaskGone } from './requests.ts'
import type { TaskState, TaskSummary, WorkingTask } from './state.ts'
import { isFinished } from './state.ts'
import { TaskWatch } from './watch.ts'

/** What is known about a task when its handle is created. */
export interface TaskOrigin {
  readonly id: string
  /** The call that became the task, or only its tool. */
  readonly call: ClientCall | undefined
  readonly pollIntervalMs: number | undefined
  /** The response that created the task a moment ago. */
  readonly created?: TaskSummary
}

/** After this time the response that created the task is too old to stand for its current state. */
const FRESH_MS = 1_000

/** A call that became a task: its status, its questions, its result. */
export class ClientTask {
  /** The id that the server gave the task. */
  readonly id: string
  readonly #context: ClientContext
  readonly #requests: TaskRequests
  readonly #call: ClientCall | undefined
  readonly #tool: string | undefined
  /** As the server said last. */
  #pollIntervalMs: number | undefined
  #questions: readonly ServerQuestion[] = []
  #created: TaskSummary | undefined
  readonly #createdAt = performance.now()
  #finished: TaskState | undefined
  /** Keys of questions that were answered, or are being answered. */
  readonly #claimedKeys = new Set<string>()

  /** @internal Use `client.startTool()` or `client.task()`. */
  constructor(context: ClientContext, { id, call, pollIntervalMs, created }: TaskOrigin) {
    const { tasks, connection } = context
    if (tasks === undefined) {
      throw wrongOption('This client was connected with tasks: false. To use tasks, connect without that option.')
    }
    if (!connection.acceptsTasks) throw noTasks(connection.revision)
    this.id = id
    this.#context = context
    this.#requests = tasks
    this.#call = call
    this.#tool = call !== undefined && 'tool' in call ? call.tool : undefined
    this.#pollIntervalMs = pollIntervalMs
    this.#created = created
  }

  /** @internal True if the server asks only while `result()` waits, and `updates()` shows no questions. */
  get asksWhileWaiting(): boolean {
    return this.#requests.asksWhileWaiting
  }

  /** Returns plain JSON, which `client.task()` accepts in any process. */
  toJSON(): SavedTask {
    return {
      version: 1,
      revision: this.#context.connection.revision,
      taskId: this.id,
      ...(this.#tool !== undefined && { tool: this.#tool }),
      ...(this.#pollIntervalMs !== undefined && { pollIntervalMs: this.#pollIntervalMs }),
    }
  }

  /** Asks the server for the current state. */
  status(options: TaskOptions = {}): Promise<TaskState> {
    return this.#withDeadline(options, (deadline) => this.#fetch(deadline))
  }

  /** Answers some or all of its open questions. Each answer is checked before it is sent. */
  answer(responses: InputResponses, options: TaskOptions = {}): Promise<void> {
    return this.#withDeadline(options, async (deadline) => {
      const keys = Object.keys(responses)
      for (const key of keys) {
        if (this.#claimedKeys.has(key)) throw alreadyAnswered(key)
      }
      if (!keys.every((key) => this.#questions.some((question) => question.key === key))) await this.#fetch(deadline)
      const answers = readAnswers(this.#questions, responses)
      if (answers.size === 0) return
      for (const key of keys) this.#claimedKeys.add(key)
      try {
        await this.#update(Object.fromEntries(answers), deadline)
      } catch (error) {
        for (const key of keys) this.#claimedKeys.delete(key)
        throw error
      }
    })
  }

  /** Asks the server to cancel the task. The server may finish it in another way: `status()` tells. */
  cancel(options: TaskOptions = {}): Promise<void> {
    return this.#withDeadline(options, (deadline) => this.#requests.cancel(this.id, deadline))
  }

  /** Waits for the result. Questions that are not answered by hand go to the client's answerers. */
  result(options: TaskOptions = {}): Promise<CallToolResult> {
    return this.#withDeadline(options, async (deadline) => {
      if (this.#finished !== undefined) return this.#resultOf(this.#finished, deadline)
      const { onProgress } = options
      if (this.#requests.asksWhileWaiting) return this.#waitForEnd(deadline, onProgress)
      let highest = -Infinity
      const tell = (progress: ProgressUpdate | undefined): void => {
        if (onProgress === undefined || progress === undefined || progress.progress <= highest) return
        highest = progress.progress
        this.#context.connection.notifications.tell(onProgress, progress)
      }
      const watch = this.#watch(deadline, this.#takeCreated() === undefined)
      const answers = new TaskAnswers({
        context: this.#context,
        call: this.#call,
        deadline,
        claimedKeys: this.#claimedKeys,
        onAnswer: () => watch.wake(),
      })
      try {
        for (;;) {
          const state = (await this.#sendReady(answers, deadline)) ?? (await watch.next())
          if (state === undefined) continue
          this.#note(state)
          tell(state.progress)
          if (isFinished(state)) return await this.#resultOf(state, deadline)
          answers.ask(this.#questions)
        }
      } finally {
        watch.close()
        answers.close()
      }
    })
  }

  /** Yields the current state, then each change, up to the final state. A slow reader gets only the last change. Answers nothing. */
  async *updates(options: TaskOptions = {}): AsyncGenerator<TaskState, void, undefined> {
    if (this.#finished !== undefined) return yield this.#finished
    const deadline = this.#openDeadline(options)
    const created = this.#takeCreated()
    const watch = this.#watch(deadline, created === undefined)
    let last = ''
    try {
      for (let known = created; ; known = undefined) {
        const state = known ?? (await watch.next())
        if (state === undefined) continue
        this.#note(state)
        const digest = digestOf(state)
        if (digest === last) continue
        last = digest
        yield state
        if (isFinished(state)) return
      }
    } catch (error) {
      throw this.#errorOf(error, deadline, options)
    } finally {
      watch.close()
      this.#context.connection.closeDeadline(deadline)
    }
  }

  [Symbol.asyncIterator](): AsyncGenerator<TaskState, void, undefined> {
    return this.updates()
  }

  /** @internal Waits for the result. An aborted signal also cancels the task, as it cancels a call. */
  async finish(options: TaskOptions): Promise<CallToolResult> {
    const { signal } = options
    // Sent at once, because the client may be closed before the wait has ended.
    const cancel = (): void => this.#requests.cancelInBackground(this.id)
    if (signal?.aborted) cancel()
    else signal?.addEventListener('abort', cancel, { once: true })
    try {
      return await this.result(options)
    } finally {
      signal?.removeEventListener('abort', cancel)
    }
  }

  /** For a server that asks while the client waits. */
  async #waitForEnd(deadline: Deadline, onProgress: TaskOptions['onProgress']): Promise<CallToolResult> {
    let failure: ProtocolError | undefined
    await this.#requests.retry(deadline, async () => {
      try {
        await this.#requests.wait(this.id, this.#call, deadline, onProgress)
      } catch (error) {
        // The error of the task itself, or of this wait: the state tells.
        if (!(error instanceof ProtocolError)) throw error
        failure = error
      }
    })
    const state = await this.#fetch(deadline)
    if (isFinished(state)) return this.#resultOf(state, deadline)
    throw failure ?? badResponse('tasks/result answered before the task had ended')
  }

  /** Sends the answers that are ready. Returns the final state if the task finished before it got them. */
  async #sendReady(answers: TaskAnswers, deadline: Deadline): Promise<TaskState | undefined> {
    const ready = answers.ready()
    if (ready === undefined) return undefined
    const state = await this.#update(ready, deadline)
    answers.sent(ready)
    return state
  }

  /** Returns the final state if the task finished before it got the answers. */
  async #update(answers: CheckedAnswers, deadline: Deadline): Promise<TaskState | undefined> {
    try {
      await this.#requests.update(this.id, answers, deadline)
      return undefined
    } catch (error) {
      if (!(error instanceof ProtocolError) && !isTaskGone(error)) throw error
      const state = await this.#fetch(deadline)
      if (isFinished(state)) return state
      throw isTaskGone(error) ? error.cause : error
    }
  }

  async #fetch(deadline: Deadline): Promise<TaskState> {
    const state = await this.#requests.retry(deadline, () => this.#requests.get(this.id, deadline))
    this.#note(state)
    return state
  }

  /** Returns the state that the task was created with, once, while it is fresh. It saves the first poll. */
  #takeCreated(): WorkingTask | undefined {
    const created = this.#created
    this.#created = undefined
    const isFresh = created?.status === 'working' && performance.now() - this.#createdAt < FRESH_MS
    return isFresh ? (created as WorkingTask) : undefined
  }

  #note(state: TaskState): void {
    if (isFinished(state)) this.#finished = state
    this.#questions = state.status === 'input_required' ? state.questions : []
    if (state.pollIntervalMs !== undefined) this.#pollIntervalMs = state.pollIntervalMs
  }

  async #resultOf(state: TaskState, deadline: Deadline): Promise<CallToolResult> {
    switch (state.status) {
      case 'completed':
        if (this.#tool !== undefined) await this.#context.lists.checkOutput(this.#tool, state.result, deadline)
        return state.result
      case 'failed':
        throw state.error
      default:
        throw cancelled(state)
    }
  }

  #watch(deadline: Deadline, isDue: boolean): TaskWatch {
    return new TaskWatch({
      connection: this.#context.connection,
      requests: this.#requests,
      id: this.id,
      deadline,
      pollIntervalMs: this.#pollIntervalMs,
      isDue,
    })
  }

  #openDeadline({ signal, taskMs = this.#context.limits.taskMs }: TaskOptions): Deadline {
    checkLimit('taskMs', taskMs)
    return this.#context.connection.openDeadline(`Waiting for the task ${shown(this.id)}`, taskMs, signal)
  }

  async #withDeadline<T>(options: TaskOptions, run: (deadline: Deadline) => Promise<T>): Promise<T> {
    const deadline = this.#openDeadline(options)
    try {
      return await this.#context.connection.withDeadline(deadline, run)
    } catch (error) {
      throw this.#errorOf(error, deadline, options)
    }
  }

  /** Adds the saved task to an error after which the task can be resumed. */
  #errorOf(error: unknown, deadline: Deadline, { taskMs = this.#context.limits.taskMs }: TaskOptions): unknown {
    const isTimeout = error instanceof ClientError && error.code === 'TIMEOUT' && deadline.isExpired
    const thrown = isTimeout ? timeout(this.id, taskMs, error) : error
    if (thrown instanceof ClientError && !FINAL_CODES.has(thrown.code)) thrown.task ??= this.toJSON()
    return thrown
  }
}

/** After these errors the task cannot be resumed. */
const FINAL_CODES: ReadonlySet<string> = new Set(['TASK_CANCELLED', 'TASK_GONE', 'RESULT_INVALID'])

/** Equal for two states that look the same to a user. */
function digestOf(state: TaskState): string {
  const keys = state.status === 'input_required' ? state.questions.map(({ key }) => key) : []
  return JSON.stringify([state.status, state.message, state.progress, keys])
}

function cancelled({ id, message }: TaskSummary): ClientError {
  const why = message === undefined ? '.' : `: ${message}`
  return new ClientError('TASK_CANCELLED', `The task ${shown(id)} was cancelled${why}`)
}

function timeout(id: string, taskMs: number, cause: ClientError): ClientError {
  return new ClientError(
    'TIMEOUT',
    `The task ${shown(id)} did not finish within ${taskMs} ms (taskMs). It keeps running on the server: pass error.task to client.task() to continue.`,
    { cause },
  )
}

function alreadyAnswered(key: string): ClientError {
  return new ClientError('ANSWER_INVALID', `The question ${shown(key)} is already answered, or is being answered.`)
}
