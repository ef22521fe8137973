// A task in somebody's hand: looked at, answered, cancelled, waited for, or put away as JSON.
import type { CallToolResult, InputResponses } from '../../protocol/messages.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { readAnswers } from '../answers/answering.ts'
import type { ClientCall } from '../call.ts'
import { checkOutput } from '../checked-output.ts'
import { ClientError, noTasks, wrongOption } from '../errors.ts'
import { shown } from '../../protocol/text.ts'
import type { ClientContext } from '../context.ts'
import type { TaskOptions } from '../options.ts'
import { checkLimit } from '../options.ts'
import type { Deadline } from '../deadline.ts'
import type { ServerQuestion } from '../answers/question.ts'
import { TaskAnswers } from './answers.ts'
import type { SavedTask } from './saved.ts'
import type { TaskSummary, TaskState, WorkingTask } from './state.ts'
import { isFinished } from './state.ts'
import { TaskWatch } from './watch.ts'
import type { TaskRequests } from './requests.ts'
import { isTaskGone } from './requests.ts'

/** What is known of a task when it is taken up. */
export interface TaskOrigin {
  readonly id: string
  /** What was called, or only the name of the tool. */
  readonly call: ClientCall | undefined
  readonly pollIntervalMs: number | undefined
  /** As the server told when it made the task a moment ago. */
  readonly made?: TaskSummary
}

/** After that a task may well stand in another way than when it was made. */
const NEWS_MS = 1_000

export class ClientTask {
  readonly id: string
  readonly #context: ClientContext
  readonly #wire: TaskRequests
  readonly #call: ClientCall | undefined
  readonly #tool: string | undefined
  /** Of the server's last word on it. */
  #pollIntervalMs: number | undefined
  #questions: readonly ServerQuestion[] = []
  /** As long as it is news. */
  #made: TaskSummary | undefined
  readonly #madeAt = performance.now()
  /** Nothing changes after it. */
  #end: TaskState | undefined
  /** Keys of questions that were answered, or are being asked. */
  readonly #taken = new Set<string>()

  /** @internal `startTool` and `client.task` make one. */
  constructor(host: ClientContext, { id, call, pollIntervalMs, made }: TaskOrigin) {
    if (host.tasks === undefined) throw wrongOption('This client was connected with tasks: false.')
    if (!host.connection.acceptsTasks) throw noTasks(host.connection.revision)
    this.id = id
    this.#context = host
    this.#wire = host.tasks
    this.#call = call
    this.#tool = call !== undefined && 'tool' in call ? call.tool : undefined
    this.#pollIntervalMs = pollIntervalMs
    this.#made = made
  }

  /** Plain JSON: `client.task` takes it up, in any process. */
  toJSON(): SavedTask {
    return {
      version: 1,
      revision: this.#context.connection.revision,
      taskId: this.id,
      ...(this.#tool !== undefined && { tool: this.#tool }),
      ...(this.#pollIntervalMs !== undefined && { pollIntervalMs: this.#pollIntervalMs }),
    }
  }

  /** How it stands now. */
  status(options: TaskOptions = {}): Promise<TaskState> {
    return this.#within(options, (deadline) => this.#look(deadline))
  }

  /** Answers some or all of its open questions, each checked before it is sent. */
  answer(responses: InputResponses, options: TaskOptions = {}): Promise<void> {
    return this.#within(options, async (deadline) => {
      const keys = Object.keys(responses)
      for (const key of keys) {
        if (this.#taken.has(key)) throw answeredAlready(key)
      }
      if (!keys.every((key) => this.#questions.some((question) => question.key === key))) await this.#look(deadline)
      const texts = readAnswers(this.#questions, responses)
      if (texts.size === 0) return
      for (const key of keys) this.#taken.add(key)
      try {
        const members = [...texts].map(([key, text]) => `${JSON.stringify(key)}:${text}`)
        await this.#update(`{${members.join(',')}}`, deadline)
      } catch (error) {
        // To be tried again, by whomever.
        for (const key of keys) this.#taken.delete(key)
        throw error
      }
    })
  }

  /** Asks the server to stop it. It need not, and may come to another end: `status` tells. */
  cancel(options: TaskOptions = {}): Promise<void> {
    return this.#within(options, (deadline) => this.#wire.cancel(this.id, deadline))
  }

  /** Waits for its end. The client's answerers are asked what nobody has answered by hand. */
  result(options: TaskOptions = {}): Promise<CallToolResult> {
    return this.#within(options, async (deadline) => {
      if (this.#end !== undefined) return this.#resultOf(this.#end, deadline)
      const watch = this.#watch(deadline, this.#takeBegun() === undefined)
      const answers = new TaskAnswers({
        context: this.#context,
        call: this.#call,
        deadline,
        taken: this.#taken,
        onAnswer: () => watch.wake(),
      })
      try {
        for (;;) {
          const state = (await this.#send(answers, deadline)) ?? (await watch.next())
          if (state === undefined) continue
          this.#note(state)
          if (isFinished(state)) return await this.#resultOf(state, deadline)
          answers.ask(this.#questions)
        }
      } finally {
        watch.close()
        answers.close()
      }
    })
  }

  /** How it stands now, and then each change, to its end; to somebody who is slow, the last one only. Answers nothing. */
  async *updates(options: TaskOptions = {}): AsyncGenerator<TaskState, void, undefined> {
    if (this.#end !== undefined) return yield this.#end
    const deadline = this.#begin(options)
    const begun = this.#takeBegun()
    const watch = this.#watch(deadline, begun === undefined)
    let seen = ''
    try {
      for (let known = begun; ; known = undefined) {
        const state = known ?? (await watch.next())
        if (state === undefined) continue
        this.#note(state)
        const now = digestOf(state)
        if (now === seen) continue
        seen = now
        yield state
        if (isFinished(state)) return
      }
    } catch (error) {
      throw this.#failed(error, deadline, options)
    } finally {
      watch.close()
      this.#context.connection.closeDeadline(deadline)
    }
  }

  [Symbol.asyncIterator](): AsyncGenerator<TaskState, void, undefined> {
    return this.updates()
  }

  /** @internal For a caller who ends the call, and with it the task, with one signal. */
  async finish(options: TaskOptions): Promise<CallToolResult> {
    const { signal } = options
    // At once, and not when the waiting has ended: the client may be closed in between.
    const cancel = (): void => this.#wire.cancelInBackground(this.id)
    if (signal?.aborted) cancel()
    else signal?.addEventListener('abort', cancel, { once: true })
    try {
      return await this.result(options)
    } finally {
      signal?.removeEventListener('abort', cancel)
    }
  }

  /** Gives how it stands, where that had to be found out. */
  async #send(answers: TaskAnswers, deadline: Deadline): Promise<TaskState | undefined> {
    const ready = answers.ready()
    if (ready === undefined) return undefined
    const state = await this.#update(ready.text, deadline)
    answers.sent(ready.keys)
    return state
  }

  /** Gives its end, where it came to one before it was answered. */
  async #update(text: string, deadline: Deadline): Promise<TaskState | undefined> {
    try {
      await this.#wire.update(this.id, text, deadline)
      return undefined
    } catch (error) {
      if (!(error instanceof ProtocolError) && !isTaskGone(error)) throw error
      const state = await this.#look(deadline)
      if (isFinished(state)) return state
      throw isTaskGone(error) ? error.cause : error
    }
  }

  async #look(deadline: Deadline): Promise<TaskState> {
    const state = await this.#wire.retry(deadline, () => this.#wire.get(this.id, deadline))
    this.#note(state)
    return state
  }

  /** Right after it was made, it need not be looked at to know how it stands. */
  #takeBegun(): WorkingTask | undefined {
    const made = this.#made
    this.#made = undefined
    const isNews = made?.status === 'working' && performance.now() - this.#madeAt < NEWS_MS
    return isNews ? (made as WorkingTask) : undefined
  }

  #note(state: TaskState): void {
    if (isFinished(state)) this.#end = state
    this.#questions = state.status === 'input_required' ? state.questions : []
    if (state.pollIntervalMs !== undefined) this.#pollIntervalMs = state.pollIntervalMs
  }

  async #resultOf(state: TaskState, deadline: Deadline): Promise<CallToolResult> {
    switch (state.status) {
      case 'completed':
        if (this.#tool !== undefined) await checkOutput(this.#context, this.#tool, state.result, deadline)
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
      requests: this.#wire,
      id: this.id,
      deadline,
      pollIntervalMs: this.#pollIntervalMs,
      isDue,
    })
  }

  #begin({ signal, taskMs = this.#context.limits.taskMs }: TaskOptions): Deadline {
    checkLimit('taskMs', taskMs)
    return this.#context.connection.openDeadline(`Waiting for the task ${shown(this.id)}`, taskMs, signal)
  }

  async #within<T>(options: TaskOptions, run: (deadline: Deadline) => Promise<T>): Promise<T> {
    const deadline = this.#begin(options)
    try {
      return await this.#context.connection.withDeadline(deadline, run)
    } catch (error) {
      throw this.#failed(error, deadline, options)
    }
  }

  #failed(error: unknown, deadline: Deadline, { taskMs = this.#context.limits.taskMs }: TaskOptions): unknown {
    const isLate = error instanceof ClientError && error.code === 'TIMEOUT' && deadline.isExpired
    const told = isLate ? late(this.id, taskMs, error) : error
    if (told instanceof ClientError && !ENDS.has(told.code)) told.task ??= this.toJSON()
    return told
  }
}

/** After these there is nothing to take up. */
const ENDS: ReadonlySet<string> = new Set(['TASK_CANCELLED', 'TASK_GONE', 'RESULT_INVALID'])

/** What tells one state from the next, to whoever looks at them. */
function digestOf(state: TaskState): string {
  const keys = state.status === 'input_required' ? state.questions.map(({ key }) => key) : []
  return JSON.stringify([state.status, state.message, keys])
}

function cancelled({ id, message }: TaskSummary): ClientError {
  const why = message === undefined ? '.' : `: ${message}`
  return new ClientError('TASK_CANCELLED', `The task ${shown(id)} was cancelled${why}`)
}

function late(id: string, taskMs: number, cause: ClientError): ClientError {
  return new ClientError(
    'TIMEOUT',
    `The task ${shown(id)} has not come to its end within ${taskMs} ms (taskMs). It goes on on the server.`,
    { cause },
  )
}

function answeredAlready(key: string): ClientError {
  return new ClientError('ANSWER_INVALID', `The question ${shown(key)} was answered already, or is being asked.`)
}
