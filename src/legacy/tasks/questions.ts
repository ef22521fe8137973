// The questions of a task while a client waits for its result, as requests on the stream of that client. Each is sent once:
// a task never uses a key twice.
import { derivedUuid } from '../../flow/derive.ts'
import { MissingCapability } from '../../flow/errors.ts'
import type { Capability } from '../../flow/question.ts'
import { missingCapabilities } from '../../flow/question.ts'
import { samplingNeeds } from '../../flow/sampling.ts'
import type { RallyError } from '../../protocol/errors.ts'
import type { InputRequest, InputRequests } from '../../protocol/messages.ts'
import { META_RELATED_TASK } from '../../protocol/revisions/older.ts'
import { hasCapability } from '../../server/capabilities.ts'
import type { LegacyHost, Outlet } from '../host.ts'
import { answerIn, askFailed, noStream, withdrawal, writeQuestions } from '../questions.ts'
import type { Session } from '../session.ts'

export interface TaskAsking {
  readonly host: LegacyHost
  readonly session: Session
  readonly outlet: Outlet
  readonly taskId: string
  /** Passes an answer to the task. */
  readonly answered: (key: string, answer: Record<string, unknown>) => void
  /** Called when the client responds with an error. */
  readonly failed: (error: RallyError) => void
}

export class TaskQuestions {
  readonly #asking: TaskAsking
  readonly #sent = new Set<string>()
  /** The ids of the requests that asked, by the key of the question. */
  readonly #open = new Map<string, string>()

  constructor(asking: TaskAsking) {
    this.#asking = asking
  }

  /** Sends the questions that have not been sent, and withdraws those that the task does not show any more. */
  show(questions: InputRequests): void {
    for (const key of this.#open.keys())
      if (!Object.hasOwn(questions, key)) this.#withdraw(key, 'The question is settled.')
    const { session, taskId } = this.#asking
    const unsent = Object.entries(questions).filter(([key]) => !this.#sent.has(key))
    for (const [key, question] of unsent) {
      // The task may have been created in another session, with other capabilities.
      const missing = missingCapabilities(needsOf(question), (each) => hasCapability(session.capabilities, each))
      if (missing !== undefined) throw new MissingCapability(key, missing)
    }
    const visitId = (key: string): string => derivedUuid(taskId, `visit ${key}`)
    for (const { key, request } of writeQuestions(unsent, session.revision, visitId)) this.#send(key, request)
  }

  /** Withdraws all questions: the client waits no longer. */
  end(): void {
    for (const key of this.#open.keys()) this.#withdraw(key, 'The request for the result has ended.')
  }

  #send(key: string, request: { readonly method: string; readonly params?: object }): void {
    const { host, session, outlet, taskId, answered, failed } = this.#asking
    this.#sent.add(key)
    const id = host.asks.expect(session, (response) => {
      this.#open.delete(key)
      if ('result' in response) return answered(key, answerIn(response.result))
      failed(askFailed(key, response.error))
    })
    if (typeof id !== 'string') throw id
    this.#open.set(key, id)
    const text = JSON.stringify({ jsonrpc: '2.0', id, ...ofTask(request, taskId) })
    if (outlet.send(text)) return
    this.#open.delete(key)
    host.asks.forget(id)
    throw noStream(key, outlet)
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
