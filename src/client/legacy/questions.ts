// The requests of an older server, answered by the same answerers that serve every call.
import { INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND } from '../../protocol/errors.ts'
import { isObject, isTame } from '../../protocol/json.ts'
import type { Logger } from '../../protocol/logger.ts'
import type { RequestId } from '../../protocol/messages.ts'
import type { Answerers } from '../answers/answerers.ts'
import { answerQuestion } from '../answers/answering.ts'
import type { Capability } from '../capabilities.ts'
import type { ServerInfo } from '../discovery.ts'
import { ClientError, lost, notResumable } from '../errors.ts'
import { reasonOf } from '../../protocol/text.ts'
import { MAX_DEPTH } from '../pending.ts'
import type { ServerQuestion } from '../answers/question.ts'
import { readQuestion } from '../answers/question.ts'
import { errorMembers, resultMembers, stateIn, withoutState } from './carried-state.ts'
import type { InFlightCall } from './in-flight-call.ts'

export interface QuestionsOptions {
  readonly answerers: Answerers
  readonly can: ReadonlySet<Capability>
  readonly maxRounds: number
  readonly maxStateBytes: number
  readonly logger: Logger
  readonly server: () => ServerInfo
  readonly revision: () => string
  /** `isCarried` says that it does no harm to say it twice. */
  readonly say: (text: string, isCarried: boolean) => Promise<void>
}

interface ReceivedQuestion {
  readonly id: RequestId
  readonly state: string | undefined
  readonly request: Record<string, unknown>
}

/** Whatever calls they belong to, and those that belong to none. */
const MOST_OPEN = 1_000

export class Questions {
  readonly #asked: QuestionsOptions
  readonly #open = new Map<string, AbortController>()

  constructor(asked: QuestionsOptions) {
    this.#asked = asked
  }

  /** `calls` are those in the course of which it may be asked: one, if the server tells. */
  take(message: Record<string, unknown>, requestId: RequestId | undefined, calls: readonly InFlightCall[]): void {
    const { id, method, params = {} } = message
    if (typeof id !== 'string' && typeof id !== 'number') {
      return this.#asked.logger.warn('The server sent a request without an id.', { method })
    }
    let state: string | undefined
    try {
      state = stateIn(params, this.#asked.maxStateBytes)
    } catch (error) {
      return void this.#refuse(id, error as ClientError, calls)
    }
    if (method === 'ping') return void this.#reply(id, resultMembers('{}', state))
    const refusal = this.#refusalOf(method, params)
    if (refusal !== undefined) return void this.#reply(id, errorMembers(...refusal, state))
    const name = nameOf(requestId, id)
    // Delivered once more, after its stream was lost.
    if (this.#open.has(name)) return
    if (this.#open.size >= MOST_OPEN) {
      return void this.#reply(id, errorMembers(INTERNAL_ERROR, 'Too many questions are open', state))
    }
    const controller = new AbortController()
    this.#open.set(name, controller)
    const [call] = calls.length === 1 ? calls : []
    const letGo = calls.map((each) => each.pauseClock())
    const settle = (): void => {
      for (const release of letGo.splice(0)) release()
      call?.settled(controller)
      this.#open.delete(name)
    }
    // Whoever answers may never come to an end.
    controller.signal.addEventListener('abort', settle, { once: true })
    const answered = state === undefined ? () => {} : call?.carry()
    const question = { id, state, request: { method, params: withoutState(params) } }
    void this.#answer(question, call, controller, settle).finally(answered)
  }

  /** The server has lost interest in an answer. */
  cancelled(params: unknown, requestId: RequestId | undefined): void {
    const { requestId: id } = isObject(params) ? params : {}
    if (typeof id === 'string' || typeof id === 'number') this.#open.get(nameOf(requestId, id))?.abort()
  }

  /** Nobody is there any more to answer. */
  end(): void {
    for (const controller of this.#open.values()) controller.abort()
  }

  /** What cannot be carried cannot be answered either: where the call is known, it ends. */
  async #refuse(id: RequestId, error: ClientError, calls: readonly InFlightCall[]): Promise<void> {
    await this.#reply(id, errorMembers(INVALID_PARAMS, error.message))
    const [call] = calls.length === 1 ? calls : []
    call?.fail(error)
    if (call === undefined) this.#asked.logger.error('A question of the server could not be answered.', { error })
  }

  async #answer(
    { id, state, request }: ReceivedQuestion,
    call: InFlightCall | undefined,
    controller: AbortController,
    settle: () => void,
  ): Promise<void> {
    const { signal } = controller
    try {
      call?.ask(controller, this.#asked.maxRounds, state !== undefined)
      const text = await this.#textOf(String(id), request, call, signal)
      // From here on it is the server that is waited for.
      settle()
      if (!signal.aborted && !(await this.#reply(id, resultMembers(text, state), state !== undefined))) {
        call?.fail(lost('an answer of this client has not reached the server'))
      }
    } catch (error) {
      settle()
      if (signal.aborted) return
      // First, because ending the call makes the answer one that nobody waits for.
      await this.#reply(id, errorMembers(codeOf(error), reasonFor(error), state), state !== undefined)
      call?.fail(error as Error)
      if (call === undefined) this.#asked.logger.error('A question of the server could not be answered.', { error })
    }
  }

  async #textOf(
    key: string,
    request: Record<string, unknown>,
    call: InFlightCall | undefined,
    signal: AbortSignal,
  ): Promise<string> {
    const { answerers, can, server, revision } = this.#asked
    if (!isTame(request, MAX_DEPTH)) {
      throw new ClientError(
        'QUESTION_INVALID',
        "The server's question is nested too deeply, or holds a number that is none.",
      )
    }
    const question = withoutContext(readQuestion(key, request), can)
    try {
      const context = { server: server(), call: call?.call, signal }
      return inWordsOf(revision(), question, await answerQuestion(question, answerers, can, context))
    } catch (error) {
      if (!(error instanceof ClientError && error.code === 'NO_ANSWERER')) throw error
      throw notResumable(revision(), error)
    }
  }

  /** What was not declared is not known here. */
  #refusalOf(method: unknown, params: unknown): [code: number, message: string] | undefined {
    const { can } = this.#asked
    const unknown: [number, string] = [METHOD_NOT_FOUND, 'Method not found']
    switch (method) {
      case 'elicitation/create': {
        if (!can.has('elicitation.form') && !can.has('elicitation.url')) return unknown
        const mode = isObject(params) && params['mode'] === 'url' ? 'url' : 'form'
        return can.has(`elicitation.${mode}`)
          ? undefined
          : [INVALID_PARAMS, `This client has not declared elicitation.${mode}`]
      }
      case 'sampling/createMessage': {
        if (!can.has('sampling')) return unknown
        const hasTools = isObject(params) && (params['tools'] !== undefined || params['toolChoice'] !== undefined)
        return hasTools && !can.has('sampling.tools')
          ? [INVALID_PARAMS, 'This client has not declared sampling.tools']
          : undefined
      }
      case 'roots/list':
        return can.has('roots') ? undefined : unknown
      default:
        return unknown
    }
  }

  /** Gives whether it has arrived, as far as is known. */
  async #reply(id: RequestId, members: string, isCarried = false): Promise<boolean> {
    try {
      await this.#asked.say(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},${members}}`, isCarried)
      return true
    } catch (error) {
      this.#asked.logger.warn('An answer to a request of the server has not reached it.', { error })
      return false
    }
  }
}

/** Servers that make a new session for every call may use the same id in each. */
function nameOf(requestId: RequestId | undefined, id: RequestId): string {
  return `${requestId ?? ''} ${JSON.stringify(id)}`
}

/** In these revisions a server may ask for context without knowing that it can be had, and a client may leave it out. */
function withoutContext(question: ServerQuestion, can: ReadonlySet<Capability>): ServerQuestion {
  if (question.kind !== 'sample' || can.has('sampling.context')) return question
  const { includeContext: _context, ...rest } = question
  return rest
}

/** Before 2025-11-25 a model says one thing at a time. */
function inWordsOf(revision: string, { kind, key }: ServerQuestion, text: string): string {
  if (kind !== 'sample' || revision >= '2025-11-25') return text
  const answer = JSON.parse(text) as { content: unknown }
  if (!Array.isArray(answer.content)) return text
  if (answer.content.length === 1) return JSON.stringify({ ...answer, content: answer.content[0] as unknown })
  throw new ClientError(
    'ANSWER_INVALID',
    `The answer to ${JSON.stringify(key)} does not fit: in ${revision} its content must be one block.`,
  )
}

function codeOf(error: unknown): number {
  return error instanceof ClientError && error.code === 'QUESTION_INVALID' ? INVALID_PARAMS : INTERNAL_ERROR
}

/** What went wrong inside of an answerer is none of the server's business. */
function reasonFor(error: unknown): string {
  return error instanceof ClientError ? reasonOf(error) : 'The question could not be answered'
}
