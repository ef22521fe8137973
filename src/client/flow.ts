// One logical request, from the first call to the final result: sends rounds, has their questions answered, and carries
// the server's state between them.
import { HEADER_MISMATCH, ProtocolError } from '../protocol/errors.ts'
import type { InputRequests, InputResponses } from '../protocol/messages.ts'
import { headersOf } from '../schema/param-headers.ts'
import type { AnswerContext } from './answers/answerers.ts'
import { answerQuestions, readAnswers } from './answers/answering.ts'
import type { ClientCall, CallTarget } from './call.ts'
import { paramsOf } from './call.ts'
import { checkOutput } from './checked-output.ts'
import type { ServerInfo } from './discovery.ts'
import { ClientError, notResumable, tooMany } from './errors.ts'
import type { ClientContext } from './context.ts'
import type { RequiredVisits } from './legacy/required-visits.ts'
import type { CallOptions } from './options.ts'
import type { Deadline } from './deadline.ts'
import type { PendingCall, Results, RoundMethod } from './pending.ts'
import type { ServerQuestion } from './answers/question.ts'
import { readQuestions } from './answers/question.ts'
import type { RoundResult } from './round.ts'
import { RETRY_FORMAT } from './revision.ts'
import { readRound } from './round.ts'
import { ClientTask } from './tasks/task.ts'
import { readTaskSummary } from './tasks/state.ts'

/** A round, to whoever takes the rounds of a call in their own hands. */
export type CallRound<R> = AskingRound | DeferredRound | TaskRound | DoneRound<R>

export interface AskingRound {
  readonly kind: 'asks'
  readonly questions: readonly ServerQuestion[]
  /** Plain JSON: `resume` goes on from here, in any process. */
  readonly pending: PendingCall
  /** Answers some or all of the questions, checked at once. The client's answerers are asked the others. */
  answer(responses: InputResponses): void
}

/** The server wants to be called again, soon: it is being replaced, or has too much to do. */
export interface DeferredRound {
  readonly kind: 'deferred'
  readonly pending: PendingCall
}

/** The server goes on by itself, as a task. Going on waits for its end, and leaving leaves it to the server. */
export interface TaskRound {
  readonly kind: 'task'
  readonly task: ClientTask
}

export interface DoneRound<R> {
  readonly kind: 'done'
  readonly result: R
}

type EndOfRounds = Extract<RoundResult, { kind: 'done' | 'task' }>

/** Rounds that ask nothing, over a whole call. */
const MOST_DEFERRALS = 100
const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 1_000

/** `R` is what the method of its target comes to. */
export class ClientFlow<R extends Results[RoundMethod]> {
  readonly #context: ClientContext
  readonly #target: CallTarget
  readonly #deadline: Deadline
  readonly #options: CallOptions
  /** Of the last round. */
  #requests: InputRequests | undefined
  #questions: readonly ServerQuestion[] = []
  #state: string | undefined
  #rounds = 0
  #asked = 0
  #deferrals = 0
  /** In a row. */
  #deferred = 0
  #hasRefetched = false
  #visits: RequiredVisits | undefined

  constructor(host: ClientContext, target: CallTarget, options: CallOptions, pending?: PendingCall) {
    const { timeoutMs = host.limits.timeoutMs, signal } = options
    this.#context = host
    this.#target = target
    this.#options = options
    if (pending !== undefined) this.#takeUp(pending)
    this.#deadline = host.connection.openDeadline(`${target.method} ${target.name}`, timeoutMs, signal)
  }

  /** Goes on to the end. `responses` answer the questions of the round that it was taken up from. */
  async finish(responses?: InputResponses): Promise<R> {
    const ended = await this.start(responses)
    return ended.kind === 'done' ? ended.result : this.#finishTask(ended.task)
  }

  /** Goes on until there is a result, or the server goes on as a task. */
  async start(responses?: InputResponses): Promise<DoneRound<R> | TaskRound> {
    try {
      let given = readAnswers(this.#questions, responses ?? {})
      for (;;) {
        const round = await this.#send(this.#questions.length > 0 ? await this.#answers(given) : undefined)
        if (round.kind === 'done' || round.kind === 'task') {
          const ended = this.#endOf(round)
          this.#end()
          return ended
        }
        given = new Map()
      }
    } catch (error) {
      throw this.#failed(error)
    }
  }

  /** The same, a round at a time. */
  async *rounds(): AsyncGenerator<CallRound<R>, void, undefined> {
    try {
      for (;;) {
        let answers: string | undefined
        if (this.#questions.length > 0) {
          const given = new Map<string, string>()
          yield this.#askingRound(given)
          answers = await this.#answers(given)
        } else if (this.#rounds > 0) {
          yield { kind: 'deferred', pending: this.#pending() }
        }
        const round = await this.#send(answers)
        if (round.kind !== 'done' && round.kind !== 'task') continue
        const ended = this.#endOf(round)
        yield ended
        if (ended.kind === 'task') yield { kind: 'done', result: await this.#finishTask(ended.task) }
        return
      }
    } catch (error) {
      throw this.#failed(error)
    } finally {
      this.#end()
    }
  }

  #endOf(round: EndOfRounds): DoneRound<R> | TaskRound {
    if (round.kind === 'done') return round as DoneRound<R>
    const made = readTaskSummary(round.result)
    const { id, pollIntervalMs } = made
    return { kind: 'task', task: new ClientTask(this.#context, { id, pollIntervalMs, made, call: this.#target.call }) }
  }

  /** Nothing but a tool becomes a task. */
  async #finishTask(task: ClientTask): Promise<R> {
    return (await task.finish(this.#options)) as R
  }

  #askingRound(given: Map<string, string>): AskingRound {
    const questions = this.#questions
    return {
      kind: 'asks',
      questions,
      pending: this.#pending(),
      answer: (responses) => {
        for (const [key, text] of readAnswers(questions, responses)) given.set(key, text)
      },
    }
  }

  #answers(given: ReadonlyMap<string, string>): Promise<string> {
    const { answerers, can, server } = this.#context
    const context = new RoundContext(server, this.#target.call, this.#deadline)
    return this.#deadline.waitForUser(answerQuestions(this.#questions, given, answerers, can, context))
  }

  async #send(answers: string | undefined): Promise<RoundResult> {
    if (this.#deferred > 0) {
      await this.#deadline.sleep(Math.min(FIRST_PAUSE_MS * 2 ** (this.#deferred - 1), LONGEST_PAUSE_MS))
    }
    const { limits, connection } = this.#context
    const { method, name } = this.#target
    const { maxStateBytes } = limits
    const acceptsTask = method === 'tools/call' && connection.acceptsTasks
    const round = readRound(await this.#exchange(answers), method, { maxStateBytes, acceptsTask })
    this.#rounds += 1
    if (round.kind === 'asks' || round.kind === 'deferred') {
      this.#note(round)
      return round
    }
    // It has happened: whatever is wrong with the result, there is nothing to go on with.
    this.#state = undefined
    this.#requests = undefined
    if (round.kind === 'done' && method === 'tools/call') {
      await checkOutput(this.#context, name, round.result as Results['tools/call'], this.#deadline)
    }
    return round
  }

  async #exchange(answers: string | undefined): Promise<Record<string, unknown>> {
    const { connection, lists, tools } = this.#context
    const { method, name, members: target } = this.#target
    const isTool = method === 'tools/call'
    const state = this.#state
    const { inParams, beside } = (connection.retryFormat ?? RETRY_FORMAT).writeRetry(answers, state)
    const members = target + inParams
    for (;;) {
      const isIdempotent = state !== undefined || (isTool && tools.isIdempotent(name))
      const headers = isTool && connection.usesParamHeaders ? this.#headers() : []
      try {
        const { onProgress } = this.#options
        const request = { method, name, members, beside, headers, isIdempotent, onProgress }
        return (await connection.request(request, this.#deadline)).result
      } catch (error) {
        if (connection.retryFormat === undefined && (await this.#hasVisited(error))) continue
        if (!isTool || !connection.usesParamHeaders || !isMismatch(error) || this.#hasRefetched) throw error
        // Refused before anything was done: the tool takes other headers than we know of.
        this.#hasRefetched = true
        await lists.fetch('tools', this.#deadline)
      }
    }
  }

  /** Whether an older server has refused the call only until its user has been to some pages, and may now be called again. */
  async #hasVisited(error: unknown): Promise<boolean> {
    const { answerers, can, server, connection } = this.#context
    if (answerers.onVisit === undefined) return false
    const { RequiredVisits: Visits } = await import('./legacy/index.ts')
    const context = new RoundContext(server, this.#target.call, this.#deadline)
    this.#visits ??= new Visits({
      ask: (pages) => this.#deadline.waitForUser(answerQuestions(pages, new Map(), answerers, can, context)),
      pause: (ms, pages) => connection.waitForVisit(ms, pages, this.#deadline),
    })
    return this.#visits.allow(error)
  }

  #headers(): string[] {
    const params = this.#context.tools.headersFor(this.#target.name)
    if (params.length === 0) return []
    const { arguments: args = {} } = paramsOf(this.#target) as { arguments?: Record<string, unknown> }
    return headersOf(params, args)
  }

  #note(round: Exclude<RoundResult, EndOfRounds>): void {
    if (round.kind === 'deferred') {
      this.#state = round.state
      this.#requests = undefined
      this.#questions = []
      this.#deferred += 1
      this.#deferrals += 1
      if (this.#deferrals > MOST_DEFERRALS) throw tooMany(`The server has put this call off ${this.#deferrals} times.`)
      return
    }
    // First, because with a question that cannot be asked it is the round before that can be gone on from.
    this.#questions = readQuestions(round.requests)
    this.#state = round.state
    this.#requests = round.requests
    this.#deferred = 0
    this.#asked += 1
    const { maxRounds } = this.#context.limits
    if (this.#asked > maxRounds) {
      throw tooMany(
        `The server has asked in ${this.#asked} rounds of one call; this client takes ${maxRounds} (maxRounds).`,
      )
    }
  }

  #takeUp({ revision, inputRequests, requestState }: PendingCall): void {
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

  #failed(error: unknown): unknown {
    const canGoOn = this.#requests !== undefined || this.#state !== undefined
    if (error instanceof ClientError && canGoOn) error.pending ??= this.#pending()
    this.#context.connection.closeDeadline(this.#deadline, error as Error)
    return error
  }

  #end(): void {
    this.#context.connection.closeDeadline(this.#deadline)
  }
}

/** What answerers are told beside the question. A class, so that the signal is made only when somebody looks at it. */
class RoundContext implements AnswerContext {
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

function otherRevision(theirs: string, ours: string): ClientError {
  return new ClientError(
    'PENDING_INVALID',
    `The pending round cannot be taken up: it is of revision ${theirs}, and ${ours} is spoken here: give connect revision: '${theirs}'.`,
  )
}

function isMismatch(error: unknown): boolean {
  return error instanceof ProtocolError && error.rpcCode === HEADER_MISMATCH
}
