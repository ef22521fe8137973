// Follows a task to its end: shows its status on one line, and asks its questions as they arrive.
import type { ClientTask } from '../client/tasks/task.ts'
import type { TaskState } from '../client/tasks/state.ts'
import { isFinished } from '../client/tasks/state.ts'
import type { ServerQuestion } from '../client/answers/question.ts'
import { ClientError } from '../client/errors.ts'
import { ProtocolError } from '../protocol/errors.ts'
import type { CallToolResult } from '../protocol/messages.ts'
import { cleanLine } from './clean.ts'
import type { Console } from './console.ts'
import { Interrupted, Unanswered } from './exit.ts'
import { describe, hintFor } from './rounds.ts'
import type { Reporter, Responder } from './rounds.ts'
import type { Server } from './server.ts'
import { commandFor } from './server.ts'

export interface TaskViewOptions {
  readonly respond: Responder
  readonly reporter: Reporter
  /** Stops following the task. The task itself continues. */
  readonly signal: AbortSignal
  /** Why a question has no answer. */
  readonly unanswered: string
  /** For the command that returns to the task. */
  readonly server: Server
  readonly console: Console
  /** The keys of questions that the user declined before. */
  readonly declined?: ReadonlySet<string>
}

export interface TaskEnd {
  readonly result: CallToolResult
  readonly hasDeclined: boolean
}

/** If the task is not followed to its end, it continues on the server, and the user reads how to return to it. */
export async function followTask(task: ClientTask, options: TaskViewOptions): Promise<TaskEnd> {
  const { reporter, console, server, signal } = options
  const declined = new Set(options.declined)
  const view = new TaskView(task, options, declined)
  try {
    return { result: await view.follow(), hasDeclined: declined.size > 0 }
  } catch (error) {
    reporter.pause()
    if (!view.hasEnded && !isGone(error))
      console.tell(`The task keeps running. Return to it with: ${commandFor(server, task.id)}`)
    if (signal.aborted) throw new Interrupted()
    if (declined.size > 0 && error instanceof ProtocolError) throw new Unanswered(error.message, { cause: error })
    throw error
  } finally {
    reporter.pause()
  }
}

/** The status of a task in one line. */
export function statusText({ status, message = '' }: TaskState): string {
  const said = cleanLine(message)
  return said === '' ? WORDS[status] : `${WORDS[status]}: ${said}`
}

const WORDS = {
  working: 'Working',
  input_required: 'Waiting for answers',
  completed: 'Completed',
  failed: 'Failed',
  cancelled: 'Cancelled',
}

class TaskView {
  readonly #task: ClientTask
  readonly #options: TaskViewOptions
  readonly #declined: Set<string>
  readonly #answered = new Set<string>()
  /** Questions without an answer. */
  readonly #unanswered = new Map<string, ServerQuestion>()
  /** The last state that was received. */
  #state: TaskState | undefined
  #asking: Promise<void> | undefined
  /** The question that is on the screen. */
  #asked: { readonly key: string; readonly over: AbortController } | undefined
  #failure: { readonly error: unknown } | undefined
  #isLeft = false

  constructor(task: ClientTask, options: TaskViewOptions, declined: Set<string>) {
    this.#task = task
    this.#options = options
    this.#declined = declined
  }

  get hasEnded(): boolean {
    return this.#state !== undefined && isFinished(this.#state)
  }

  async follow(): Promise<CallToolResult> {
    const over = new AbortController()
    const stop = (): void => over.abort()
    const { signal } = this.#options
    // Its questions come as those of a call.
    if (this.#task.asksWhileWaiting) {
      const { reporter } = this.#options
      return this.#task.result({ signal, onProgress: (progress) => reporter.progress(progress) })
    }
    signal.addEventListener('abort', stop)
    if (signal.aborted) stop()
    try {
      for await (const state of this.#task.updates({ signal: over.signal })) this.#note(state, stop)
    } catch (error) {
      throw this.#failure === undefined ? error : this.#failure.error
    } finally {
      signal.removeEventListener('abort', stop)
      this.#isLeft = true
      this.#asked?.over.abort()
      await this.#asking
    }
    return this.#task.result({ signal })
  }

  #note(state: TaskState, stop: () => void): void {
    this.#state = state
    const asked = this.#asked
    if (asked !== undefined && !this.#open.some(({ key }) => key === asked.key)) asked.over.abort()
    // A question is on the screen.
    if (this.#asking !== undefined || isFinished(state)) return
    this.#report(state)
    if (this.#open.length === 0) return
    this.#asking = this.#ask()
      .catch((error: unknown) => {
        this.#failure = { error }
        stop()
      })
      .finally(() => {
        this.#asking = undefined
      })
  }

  /** A bar if the server says how far the task is, and there is a terminal to draw it on. */
  #report(state: TaskState): void {
    const { reporter } = this.#options
    if (state.progress !== undefined && reporter.draws) reporter.progress(state.progress)
    else reporter.status(statusText(state))
  }

  /** Asks one question after the other, because there is one terminal. Includes those that arrive meanwhile. */
  async #ask(): Promise<void> {
    const { reporter, respond, signal } = this.#options
    for (let [question] = this.#open; question !== undefined; [question] = this.#open) {
      const { key } = question
      const over = new AbortController()
      reporter.pause()
      this.#asked = { key, over }
      const answer = await respond(question, over.signal)
      this.#asked = undefined
      if (over.signal.aborted) continue
      if (answer === undefined) {
        this.#unanswered.set(key, question)
        continue
      }
      if ('action' in answer && answer.action !== 'accept') this.#declined.add(key)
      this.#answered.add(key)
      await this.#task.answer({ [key]: answer }, { signal })
    }
    const [missing] = this.#unanswered.values()
    // The status may have changed while the last answer was sent.
    if (missing === undefined && this.#state?.status === 'working') this.#report(this.#state)
    if (missing === undefined) return
    throw new Unanswered(`${describe(missing)}, and ${this.#options.unanswered}\n${hintFor(missing)}`)
  }

  /** The questions that are still to be asked. */
  get #open(): readonly ServerQuestion[] {
    if (this.#isLeft || this.#state?.status !== 'input_required') return []
    return this.#state.questions.filter(({ key }) => !this.#answered.has(key) && !this.#unanswered.has(key))
  }
}

function isGone(error: unknown): boolean {
  return error instanceof ClientError && error.code === 'TASK_GONE'
}
