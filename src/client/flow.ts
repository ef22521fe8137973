// One logical request, from the first call to the final result: sends rounds, gets their questions answered, and carries
// the server's state from round to round.
import type { InputRequests, InputResponses } from '../protocol/messages.ts'
import type { AnswerContext } from './answers/answerers.ts'
import type { CheckedAnswer, CheckedAnswers } from './answers/answering.ts'
import { answerQuestions, readAnswers } from './answers/answering.ts'
import type { ServerQuestion } from './answers/question.ts'
import { readQuestions } from './answers/question.ts'
import type { CallTarget, ClientCall } from './call.ts'
import { paramsOf } from './call.ts'
import type { ClientContext } from './context.ts'
import type { Deadline } from './deadline.ts'
import { Deferrals, isVersionChanged } from './deferrals.ts'
import type { ServerInfo } from './discovery.ts'
import { ClientError, notResumable, tooManyRounds } from './errors.ts'
import type { CallOptions } from './options.ts'
import type { RoundResult } from './round.ts'
import { readRound } from './round.ts'
import { RoundSender } from './round-sender.ts'
import type { PendingCall, Results, RoundMethod } from './saved.ts'
import { readTaskSummary } from './tasks/state.ts'
import { ClientTask } from './tasks/task.ts'

/** One round of a call, for a caller that handles each round itself. */
export type CallRound<R> = AskingRound | DeferredRound | TaskRound | DoneRound<R>

/** A round that asks. Answer its questions, or leave the loop and resume from `pending`. */
export interface AskingRound {
  /** Tells the kinds of rounds apart. */
  readonly kind: 'asks'
  /** What the server asks in this round. */
  readonly questions: readonly ServerQuestion[]
  /** Plain JSON: `client.resume()` continues from here, in any process. */
  readonly pending: PendingCall
  /** Answers some or all of the questions, and checks the answers at once. The client's answerers get the others. */
  answer(responses: InputResponses): void
}

/** The server wants to be called again soon, for example because it restarts or has too much to do. */
export interface DeferredRound {
  /** Tells the kinds of rounds apart. */
  readonly kind: 'deferred'
  /** Plain JSON: `client.resume()` continues from here, in any process. */
  readonly pending: PendingCall
}

/** The server continues the call as a task. The next round waits for its result; leaving the loop leaves the task running. */
export interface TaskRound {
  /** Tells the kinds of rounds apart. */
  readonly kind: 'task'
  /** The task: its status, its questions, its result. */
  readonly task: ClientTask
}

/** The last round of a call: its result. */
export interface DoneRound<R> {
  /** Tells the kinds of rounds apart. */
  readonly kind: 'done'
  /** The result of the call. */
  readonly result: R
}

type LastRound = Extract<RoundResult, { kind: 'done' | 'task' }>

/** `R` is the result of the target's method. */
export class ClientFlow<R extends Results[RoundMethod]> {
  readonly #context: ClientContext
  readonly #target: CallTarget
  readonly #deadline: Deadline
  readonly #answerContext: FlowAnswerContext
  readonly #sender: RoundSender
  readonly #options: CallOptions
  /** Of the last round, as are `#questions` and `#state`. */
  #requests: InputRequests | undefined
  #questions: readonly ServerQuestion[] = []
  #state: string | undefined
  #rounds = 0
  #askingRounds = 0
  readonly #deferrals: Deferrals

  /** `wantsTask`: a legacy server is asked to make a task of the call, if it can. */
  constructor(
    context: ClientContext,
    target: CallTarget,
    options: CallOptions,
    { pending, wantsTask = false }: { pending?: PendingCall; wantsTask?: boolean } = {},
  ) {
    const { timeoutMs = context.limits.timeoutMs, signal } = options
    this.#context = context
    this.#target = target
    this.#options = options
    if (pending !== undefined) this.#resume(pending)
    const what = `${target.method} ${target.name}`
    this.#deadline = context.connection.openDeadline(what, timeoutMs, signal)
    this.#deferrals = new Deferrals(what)
    this.#answerContext = new FlowAnswerContext(context.server, target.call, this.#deadline)
    this.#sender = new RoundSender(context, target, this.#deadline, this.#answerContext, { ...options, wantsTask })
  }

  /** True if the call had one round so far. */
  get isOneRound(): boolean {
    return this.#rounds === 1
  }

  /** Runs the call to its result. `responses` answer the questions of the round that it was resumed from. */
  async finish(responses?: InputResponses): Promise<R> {
    const last = await this.start(responses)
    return last.kind === 'done' ? last.result : this.#finishTask(last.task)
  }

  /** Runs the call until it has a result or becomes a task. */
  async start(responses?: InputResponses): Promise<DoneRound<R> | TaskRound> {
    try {
      let given = readAnswers(this.#questions, responses ?? {})
      for (;;) {
        const round = await this.#send(this.#questions.length > 0 ? await this.#answers(given) : undefined)
        if (round.kind === 'done' || round.kind === 'task') {
          const last = this.#lastRound(round)
          this.#end()
          return last
        }
        given = new Map()
      }
    } catch (error) {
      throw this.#fail(error)
    }
  }

  /** Runs the call one round at a time. */
  async *rounds(): AsyncGenerator<CallRound<R>, void, undefined> {
    try {
      for (;;) {
        let answers: CheckedAnswers | undefined
        if (this.#questions.length > 0) {
          const given = new Map<string, CheckedAnswer>()
          yield this.#askingRound(given)
          answers = await this.#answers(given)
        } else if (this.#rounds > 0) {
          yield { kind: 'deferred', pending: this.#pending() }
        }
        const round = await this.#send(answers)
        if (round.kind !== 'done' && round.kind !== 'task') continue
        const last = this.#lastRound(round)
        yield last
        if (last.kind === 'task') yield { kind: 'done', result: await this.#finishTask(last.task) }
        return
      }
    } catch (error) {
      throw this.#fail(error)
    } finally {
      this.#end()
    }
  }

  #lastRound(round: LastRound): DoneRound<R> | TaskRound {
    if (round.kind === 'done') return round as DoneRound<R>
    const created = readTaskSummary(round.result)
    const { id, pollIntervalMs } = created
    const origin = { id, pollIntervalMs, created, call: this.#target.call }
    return { kind: 'task', task: new ClientTask(this.#context, origin) }
  }

  /** Only a tool call becomes a task, so the result is that of a tool. */
  async #finishTask(task: ClientTask): Promise<R> {
    return (await task.finish(this.#options)) as R
  }

  #askingRound(given: Map<string, CheckedAnswer>): AskingRound {
    const questions = this.#questions
    return {
      kind: 'asks',
      questions,
      pending: this.#pending(),
      answer: (responses) => {
        for (const [key, answer] of readAnswers(questions, responses)) given.set(key, answer)
      },
    }
  }

  #answers(given: ReadonlyMap<string, CheckedAnswer>): Promise<CheckedAnswers> {
    return this.#deadline.waitForUser(answerQuestions(this.#questions, given, this.#context, this.#answerContext))
  }

  async #send(answers: CheckedAnswers | undefined): Promise<RoundResult> {
    const { limits, connection, lists } = this.#context
    const { method, name } = this.#target
    const { maxStateBytes } = limits
    const acceptsTask = method === 'tools/call' && connection.acceptsTasks
    const result = await this.#exchange(answers)
    const round = readRound(result, method, { maxStateBytes, acceptsTask })
    this.#rounds += 1
    if (round.kind === 'asks' || round.kind === 'deferred') {
      this.#continueFrom(round)
      return round
    }
    // The call is done. Even if its result is not valid, there is no round to resume from.
    this.#state = undefined
    this.#requests = undefined
    if (round.kind === 'done' && method === 'tools/call') {
      await lists.checkOutput(name, round.result as Results['tools/call'], this.#deadline)
    }
    return round
  }

  /** Another instance may have the version of the tool that an instance refuses the call for. */
  async #exchange(answers: CheckedAnswers | undefined): Promise<Record<string, unknown>> {
    for (;;) {
      const { waitMs } = this.#deferrals
      if (waitMs > 0) await this.#deadline.sleep(waitMs)
      try {
        return await this.#sender.send(answers, this.#state)
      } catch (error) {
        if (this.#state === undefined || !isVersionChanged(error)) throw error
        this.#deferrals.count('version', error)
      }
    }
  }

  #continueFrom(round: Exclude<RoundResult, LastRound>): void {
    if (round.kind === 'deferred') {
      this.#state = round.state
      this.#requests = undefined
      this.#questions = []
      return this.#deferrals.count(round.reason)
    }
    // Read before anything is replaced: if a question is not valid, the round before can still be resumed.
    this.#questions = readQuestions(round.requests)
    this.#state = round.state
    this.#requests = round.requests
    this.#deferrals.reset()
    this.#askingRounds += 1
    const { maxRounds } = this.#context.limits
    if (this.#askingRounds > maxRounds) {
      throw tooManyRounds(
        `${this.#target.method} ${this.#target.name}: the server asked in ${this.#askingRounds} rounds, and maxRounds is ${maxRounds}. To allow more rounds, raise maxRounds in connect(), or pass error.pending to client.resume().`,
      )
    }
  }

  #resume({ revision, inputRequests, requestState }: PendingCall): void {
    const { connection } = this.#context
    if (connection.retryFormat === undefined) throw notResumable(connection.revision)
    if (revision !== connection.revision) throw otherRevision(revision, connection.revision)
    this.#requests = inputRequests
    this.#questions = readQuestions(inputRequests ?? {})
    this.#state = requestState
  }

  #pending(): PendingCall {
    const pending = {
      version: 1,
      revision: this.#context.connection.revision,
      method: this.#target.method,
      params: paramsOf(this.#target),
      ...(this.#requests !== undefined && { inputRequests: this.#requests }),
      ...(this.#state !== undefined && { requestState: this.#state }),
    }
    return pending as unknown as PendingCall
  }

  /** Adds the last round to an error after which the call can be resumed. */
  #fail(error: unknown): unknown {
    const isResumable = this.#requests !== undefined || this.#state !== undefined
    if (error instanceof ClientError && isResumable) error.pending ??= this.#pending()
    this.#context.connection.closeDeadline(this.#deadline, error as Error)
    return error
  }

  #end(): void {
    this.#context.connection.closeDeadline(this.#deadline)
  }
}

/** A class with a getter, so that an AbortSignal is created only if an answerer reads it. */
class FlowAnswerContext implements AnswerContext {
  readonly server: ServerInfo
  readonly call: ClientCall
  readonly #deadline: Deadline

  constructor(server: ServerInfo, call: ClientCall, deadline: Deadline) {
    this.server = server
    this.call = call
    this.#deadline = deadline
  }

  get signal(): AbortSignal {
    return this.#deadline.signal
  }
}

function otherRevision(saved: string, used: string): ClientError {
  return new ClientError(
    'PENDING_INVALID',
    `Cannot resume the pending call: it was saved under revision ${saved}, this connection uses ${used}. Pass revision: '${saved}' to connect().`,
  )
}
