// Answers the requests of a legacy server with the client's answerers.
import { INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND } from '../../protocol/errors.ts'
import { isObject, isTame } from '../../protocol/json.ts'
import type { Logger } from '../../protocol/logger.ts'
import type { RequestId } from '../../protocol/messages.ts'
import { reasonOf, shown } from '../../protocol/text.ts'
import type { AnswerSources, CheckedAnswer } from '../answers/answering.ts'
import { answererFor } from '../answers/answering.ts'
import type { ServerQuestion } from '../answers/question.ts'
import { readQuestion } from '../answers/question.ts'
import type { Capability } from '../capabilities.ts'
import type { ServerInfo } from '../discovery.ts'
import { ClientError, lost, notResumable } from '../errors.ts'
import { MAX_DEPTH } from '../saved.ts'
import { isText, MAX_BYTES } from '../server-text.ts'
import type { Outcome } from './carried-state.ts'
import { stateOf, withoutState, withState } from './carried-state.ts'
import type { InFlightCall } from './in-flight-call.ts'

export interface QuestionsOptions {
  readonly sources: AnswerSources
  readonly maxRounds: number
  readonly maxStateBytes: number
  /** For the questions that are open at the same time. */
  readonly maxOpenBytes: number
  readonly logger: Logger
  readonly server: () => ServerInfo
  readonly revision: () => string
  /** Sends a response. With `isCarried` the server accepts it twice, so it may be retried more often. */
  readonly reply: (message: object, isCarried: boolean) => Promise<void>
}

interface ReceivedQuestion {
  readonly id: RequestId
  readonly state: string | undefined
  readonly request: Record<string, unknown>
  /** The call that it belongs to, if that is known. */
  readonly call: InFlightCall | undefined
}

/** Questions that are open at the same time, of all calls. */
const MAX_OPEN = 1_000

export class Questions {
  readonly #options: QuestionsOptions
  readonly #open = new Map<string, AbortController>()
  /** Characters of the questions that are open. */
  #openBytes = 0

  constructor(options: QuestionsOptions) {
    this.#options = options
  }

  /** `calls` are the calls that the question may belong to. There is exactly one if the server says which. */
  receive(message: Record<string, unknown>, requestId: RequestId | undefined, calls: readonly InFlightCall[]): void {
    const { id, method, params = {} } = message
    if (typeof id !== 'number' && !isText(id, MAX_BYTES.requestId)) {
      return this.#options.logger.warn('The server sent a request without a valid id.', { method: shown(method) })
    }
    const [call] = calls.length === 1 ? calls : []
    let state: string | undefined
    try {
      state = stateOf(params, this.#options.maxStateBytes)
    } catch (error) {
      return void this.#refuse(id, error as ClientError, call)
    }
    if (method === 'ping') return void this.#reply(id, { result: {} }, state)
    const error = this.#refusalOf(method, params)
    if (error !== undefined) return void this.#reply(id, { error }, state)
    const key = keyOf(requestId, id)
    // The server sends it again after its stream was lost.
    if (this.#open.has(key)) return
    const bytes = sizeOf(message)
    if (this.#open.size >= MAX_OPEN || this.#openBytes + bytes > this.#options.maxOpenBytes) {
      const tooMany = { code: INTERNAL_ERROR, message: 'Too many questions are open' }
      return void this.#reply(id, { error: tooMany }, state)
    }
    const controller = new AbortController()
    this.#open.set(key, controller)
    this.#openBytes += bytes
    const resumeClocks = calls.map((each) => each.pauseClock())
    const settle = (): void => {
      for (const resumeClock of resumeClocks.splice(0)) resumeClock()
      call?.settled(controller)
      if (this.#open.delete(key)) this.#openBytes -= bytes
    }
    // An answerer may ignore the signal and never return.
    controller.signal.addEventListener('abort', settle, { once: true })
    const answered = state === undefined ? () => {} : call?.carry()
    const question = { id, state, request: { method, params: withoutState(params) }, call }
    void this.#answer(question, controller, settle).finally(answered)
  }

  /** The server does not need the answer any more. */
  cancelled(params: unknown, requestId: RequestId | undefined): void {
    const { requestId: id } = isObject(params) ? params : {}
    if (typeof id === 'string' || typeof id === 'number') this.#open.get(keyOf(requestId, id))?.abort()
  }

  /** The session has ended, so no answer can be sent. */
  end(): void {
    for (const controller of this.#open.values()) controller.abort()
  }

  /** A question whose state cannot be carried cannot be answered, and its call fails. */
  async #refuse(id: RequestId, error: ClientError, call: InFlightCall | undefined): Promise<void> {
    await this.#reply(id, { error: { code: INVALID_PARAMS, message: error.message } }, undefined)
    this.#fail(error, call)
  }

  async #answer(question: ReceivedQuestion, controller: AbortController, settle: () => void): Promise<void> {
    const { id, state, call } = question
    const { signal } = controller
    try {
      call?.ask(controller, this.#options.maxRounds, state !== undefined)
      const result = await this.#resultOf(question, signal)
      // From here on the call waits for the server again.
      settle()
      if (!signal.aborted && !(await this.#reply(id, { result }, state))) {
        call?.fail(lost('an answer did not reach the server'))
      }
    } catch (error) {
      settle()
      if (signal.aborted) return
      // Sent before the call fails: a failed call cancels its questions.
      await this.#reply(id, { error: { code: codeOf(error), message: messageFor(error) } }, state)
      this.#fail(error as Error, call)
    }
  }

  #fail(error: Error, call: InFlightCall | undefined): void {
    if (call === undefined) this.#options.logger.error('A question of the server could not be answered.', { error })
    else call.fail(error)
  }

  async #resultOf({ id, request, call }: ReceivedQuestion, signal: AbortSignal): Promise<CheckedAnswer> {
    const { sources, server, revision } = this.#options
    if (!isTame(request, MAX_DEPTH)) {
      throw new ClientError(
        'QUESTION_INVALID',
        `The server's question is not valid: it is nested more than ${MAX_DEPTH} levels deep, or contains a number that is not finite.`,
      )
    }
    const question = withoutContext(readQuestion(String(id), request), sources.can)
    try {
      const answer = await answererFor(question, sources)({ server: server(), call: call?.call, signal })
      return answerFor(revision(), question, answer)
    } catch (error) {
      if (!(error instanceof ClientError && error.code === 'NO_ANSWERER')) throw error
      throw notResumable(revision(), error)
    }
  }

  /** Returns the error for a request whose capability was not declared. */
  #refusalOf(method: unknown, params: unknown): { code: number; message: string } | undefined {
    const { can } = this.#options.sources
    const unknown = { code: METHOD_NOT_FOUND, message: 'Method not found' }
    switch (method) {
      case 'elicitation/create': {
        if (!can.has('elicitation.form') && !can.has('elicitation.url')) return unknown
        const mode = isObject(params) && params['mode'] === 'url' ? 'url' : 'form'
        return can.has(`elicitation.${mode}`) ? undefined : undeclared(`elicitation.${mode}`)
      }
      case 'sampling/createMessage': {
        if (!can.has('sampling')) return unknown
        const hasTools = isObject(params) && (params['tools'] !== undefined || params['toolChoice'] !== undefined)
        return hasTools && !can.has('sampling.tools') ? undeclared('sampling.tools') : undefined
      }
      case 'roots/list':
        return can.has('roots') ? undefined : unknown
      default:
        return unknown
    }
  }

  /** Returns false if the response did not reach the server. */
  async #reply(id: RequestId, outcome: Outcome, state: string | undefined): Promise<boolean> {
    const isCarried = state !== undefined
    try {
      await this.#options.reply({ jsonrpc: '2.0', id, ...withState(outcome, state) }, isCarried)
      return true
    } catch (error) {
      this.#options.logger.warn('A response to a request of the server did not reach it.', { error })
      return false
    }
  }
}

/** A message that is nested too deeply is refused right after this, so it does not count. */
function sizeOf(message: Record<string, unknown>): number {
  return isTame(message, MAX_DEPTH) ? JSON.stringify(message).length : 0
}

/** Servers that open a new session for every call may use the same id in each. */
function keyOf(requestId: RequestId | undefined, id: RequestId): string {
  return `${requestId ?? ''} ${JSON.stringify(id)}`
}

function undeclared(capability: Capability): { code: number; message: string } {
  return { code: INVALID_PARAMS, message: `This client has not declared ${capability}` }
}

/** In legacy revisions a server may ask for context that was not declared, and the client may leave it out. */
function withoutContext(question: ServerQuestion, can: ReadonlySet<Capability>): ServerQuestion {
  if (question.kind !== 'sample' || can.has('sampling.context')) return question
  const { includeContext: _context, ...rest } = question
  return rest
}

/** Before 2025-11-25 the answer of a model is one content block, not a list. */
function answerFor(revision: string, { kind, key }: ServerQuestion, answer: CheckedAnswer): CheckedAnswer {
  const { content } = answer
  if (kind !== 'sample' || revision >= '2025-11-25' || !Array.isArray(content)) return answer
  if (content.length === 1) return { ...answer, content: content[0] as unknown }
  throw new ClientError(
    'ANSWER_INVALID',
    `The answer to ${shown(key)} does not match its question: in revision ${revision} its content must be one block, got ${content.length}.`,
  )
}

function codeOf(error: unknown): number {
  return error instanceof ClientError && error.code === 'QUESTION_INVALID' ? INVALID_PARAMS : INTERNAL_ERROR
}

/** The message of an answerer's own error is not sent to the server. */
function messageFor(error: unknown): string {
  return error instanceof ClientError ? reasonOf(error) : 'The question could not be answered'
}
