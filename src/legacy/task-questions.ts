// What a task asks while somebody waits for its result, as requests on the stream of whoever waits. Each question is sent once:
// its key is never used again in the life of the task.
import { derivedUuid } from '../flow/derive.ts'
import { MissingCapability } from '../flow/errors.ts'
import type { Capability } from '../flow/question.ts'
import { missingCapabilities } from '../flow/question.ts'
import { samplingNeeds } from '../flow/sampling.ts'
import { RallyError } from '../protocol/errors.ts'
import type { InputRequest, InputRequests } from '../protocol/messages.ts'
import { META_RELATED_TASK } from '../protocol/revisions/older.ts'
import { hasCapability } from '../server/capabilities.ts'
import type { LegacyHost, Outlet } from './host.ts'
import { answerIn, noStream, withdrawal, writeQuestions } from './questions.ts'
import type { Session } from './session.ts'

export interface TaskAsking {
  readonly host: LegacyHost
  readonly session: Session
  readonly outlet: Outlet
  readonly taskId: string
  /** Takes an answer up into the task. */
  readonly answered: (key: string, answer: Record<string, unknown>) => void
  /** The client has no answer to give. */
  readonly failed: (error: RallyError) => void
}

export class TaskQuestions {
  readonly #asking: TaskAsking
  readonly #sent = new Set<string>()
  /** Ids that the questions were asked under, by key. */
  readonly #open = new Map<string, string>()

  constructor(asking: TaskAsking) {
    this.#asking = asking
  }

  /** Asks those that have not been asked, and withdraws those that wait for no answer any more. */
  show(questions: InputRequests): void {
    for (const key of this.#open.keys()) if (!Object.hasOwn(questions, key)) this.#withdraw(key, 'It is settled.')
    const { session, taskId } = this.#asking
    const unsent = Object.entries(questions).filter(([key]) => !this.#sent.has(key))
    for (const [key, question] of unsent) {
      // It may be another session than the one that the task was made in.
      const missing = missingCapabilities(needsOf(question), (each) => hasCapability(session.capabilities, each))
      if (missing !== undefined) throw new MissingCapability(key, missing)
    }
    const visitId = (key: string): string => derivedUuid(taskId, `visit ${key}`)
    for (const { key, request } of writeQuestions(unsent, session.revision, visitId)) this.#send(key, request)
  }

  /** Nobody waits for the result any more. */
  end(): void {
    for (const key of this.#open.keys()) this.#withdraw(key, 'Nobody waits for the result any more.')
  }

  #send(key: string, request: { readonly method: string; readonly params?: object }): void {
    const { host, session, outlet, taskId, answered, failed } = this.#asking
    this.#sent.add(key)
    const id = host.asks.expect(session, (response) => {
      this.#open.delete(key)
      if ('result' in response) return answered(key, answerIn(response.result))
      failed(new RallyError('ASK_FAILED', `The client could not answer the question "${key}": ${response.error}`))
    })
    if (id === undefined) {
      throw new RallyError('ASK_LIMIT', 'Too many questions wait for an answer. Try again later.')
    }
    this.#open.set(key, id)
    const text = JSON.stringify({ jsonrpc: '2.0', id, ...ofTask(request, taskId) })
    if (outlet.send(text)) return
    this.#open.delete(key)
    host.asks.forget(id)
    throw noStream(key)
  }

  #withdraw(key: string, reason: string): void {
    const { host, outlet } = this.#asking
    const id = this.#open.get(key)
    this.#open.delete(key)
    if (id === undefined) return
    host.asks.forget(id)
    outlet.notify(withdrawal(id, reason))
  }
}

function needsOf(question: InputRequest): readonly Capability[] {
  switch (question.method) {
    case 'elicitation/create':
      return [question.params.mode === 'url' ? 'elicitation.url' : 'elicitation.form']
    case 'sampling/createMessage':
      return samplingNeeds(question.params)
    case 'roots/list':
      return ['roots']
  }
}

function ofTask(request: { readonly method: string; readonly params?: object }, taskId: string): object {
  const params: { _meta?: object } = request.params ?? {}
  return { ...request, params: { ...params, _meta: { ...params._meta, [META_RELATED_TASK]: { taskId } } } }
}
