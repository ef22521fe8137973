// The questions of one round, as requests to the client: written in the words of its revision, sent together, and awaited.
import type { Answers } from '../flow/answering.ts'
import { lackText } from '../flow/errors.ts'
import { MAX_TIMER_MS } from '../flow/scheduler.ts'
import type { Cancel } from '../protocol/cancel.ts'
import { RallyError } from '../protocol/errors.ts'
import { isObject, isTame } from '../protocol/json.ts'
import type { InputRequest } from '../protocol/messages.ts'
import type { OlderRevision } from '../protocol/revisions/older.ts'
import type { Asks } from './asks.ts'
import type { Outlet } from './host.ts'
import type { Session } from './session.ts'

/** A question in the words of the client's revision. */
export interface Question {
  readonly key: string
  readonly request: { readonly method: string; readonly params?: object }
  readonly isVisit: boolean
}

/** Writes all questions before any is sent. Throws `MISSING_CAPABILITY` for one that the revision cannot express. */
export function writeQuestions(
  questions: readonly (readonly [string, InputRequest])[],
  revision: OlderRevision,
  elicitationId: (key: string) => string,
): Question[] {
  return questions.map(([key, question]) => {
    const request = revision.question(question, elicitationId(key))
    if ('unsupported' in request) {
      throw new RallyError(
        'MISSING_CAPABILITY',
        lackText(
          `has a question ("${key}") that revision ${revision.name} of MCP cannot express: ${request.unsupported}`,
          'uses that revision',
          'a newer one',
        ),
      )
    }
    const isVisit = question.method === 'elicitation/create' && question.params.mode === 'url'
    return { key, request, isVisit }
  })
}

export interface Asking {
  readonly asks: Asks
  readonly session: Session
  readonly outlet: Outlet
  readonly cancel: Cancel
  /** How long the client may take to answer the question of this key. */
  readonly msOf: (key: string) => number
  /** When the next pass is due although not all of them are answered. Those are withdrawn, and the pass may ask them again. */
  readonly dueMs?: number
  /** Called when a question is answered. */
  readonly received: (key: string) => void
}

const MAX_ANSWER_DEPTH = 100

/** Returns the answers by key, or `undefined` if the call was cancelled. Once it settles, no question waits any more. */
export function askAll(questions: readonly Question[], asking: Asking): Promise<Answers | undefined> {
  const { asks, session, outlet, cancel, msOf, dueMs, received } = asking
  const answers = Object.create(null) as Record<string, Record<string, unknown>>
  if (questions.length === 0 && dueMs === undefined) return Promise.resolve(cancel.cancelled ? undefined : answers)
  return new Promise((resolve, reject) => {
    /** The keys of the questions, by the id of the request that asked. */
    const open = new Map<string, string>()
    let over = false
    let stopListening: (() => void) | undefined
    const finish = (reason: string | undefined, settle: () => void): void => {
      if (over) return
      over = true
      for (const timer of timers) clearTimeout(timer)
      clearTimeout(dueTimer)
      cancel.listen(undefined)
      stopListening?.()
      for (const id of open.keys()) {
        asks.forget(id)
        outlet.notify(withdrawal(id, reason))
      }
      settle()
    }
    const timers = Array.from(new Set(questions.map(({ key }) => msOf(key))), (ms) => {
      const expire = (): void => {
        const late = Array.from(open.values()).filter((key) => msOf(key) === ms)
        if (late.length === 0) return
        const error = new RallyError('ASK_TIMEOUT', `The client did not answer ${quoted(late)} within ${ms} ms.`)
        finish('The time to answer is over.', () => reject(error))
      }
      return setTimeout(expire, Math.min(ms, MAX_TIMER_MS)).unref()
    })
    const due = (): void => finish('The time to answer is over.', () => resolve(answers))
    const dueTimer = dueMs === undefined ? undefined : setTimeout(due, Math.min(dueMs, MAX_TIMER_MS))
    cancel.listen(() => finish('The call was cancelled.', () => resolve(undefined)))
    for (const { key, request } of questions) {
      if (over) return
      const id = asks.expect(session, (response) => {
        if (typeof id === 'string') open.delete(id)
        if ('error' in response) {
          const error = askFailed(key, response.error)
          return finish('Another question could not be answered.', () => reject(error))
        }
        const answer = answerIn(response.result)
        // It waits for the other answers, and its size is the client's choice.
        const noRoom = open.size > 0 ? outlet.keep?.(Buffer.byteLength(JSON.stringify(answer))) : undefined
        if (noRoom !== undefined) {
          const error = new RallyError('ASK_LIMIT', `The answer to "${key}" cannot be kept. ${noRoom}`)
          return finish('Another answer is too large.', () => reject(error))
        }
        answers[key] = answer
        received(key)
        if (open.size === 0) finish(undefined, () => resolve(answers))
      })
      if (typeof id !== 'string') return finish(undefined, () => reject(id))
      open.set(id, key)
      if (!outlet.send(JSON.stringify({ jsonrpc: '2.0', id, ...request }))) {
        return finish(undefined, () => reject(noStream(key, outlet)))
      }
    }
    if (over) return
    // Without the stream no answer leads to anything: the result could not be sent.
    if (questions.length > 0) stopListening = outlet.onLost?.(() => finish(undefined, () => reject(streamLost(open))))
    if (over) stopListening?.()
  })
}

/** Returns the answer in a result. A result that is not an object becomes an empty answer, so the question is asked again. */
export function answerIn(result: unknown): Record<string, unknown> {
  return isObject(result) && isTame(result, MAX_ANSWER_DEPTH) ? result : {}
}

export function askFailed(key: string, why: string): RallyError {
  return new RallyError('ASK_FAILED', `The client could not answer the question "${key}": ${why}`)
}

function streamLost(open: ReadonlyMap<string, string>): RallyError {
  return new RallyError(
    'NO_STREAM',
    `The client did not answer ${quoted([...open.values()])} before its event stream was closed: it did not read the stream, or others needed the room (limits.maxStreams).`,
  )
}

export function noStream(key: string, { refusal }: Pick<Outlet, 'refusal'>): RallyError {
  if (refusal !== undefined) return new RallyError('ASK_LIMIT', `The question "${key}" cannot be sent. ${refusal}`)
  return new RallyError(
    'NO_STREAM',
    `The question "${key}" cannot be sent: there is no event stream to the client. The client must accept text/event-stream.`,
  )
}

function quoted(keys: readonly string[]): string {
  return `the question${keys.length === 1 ? '' : 's'} ${keys.map((key) => `"${key}"`).join(', ')}`
}

export function withdrawal(requestId: string, reason: string | undefined): string {
  return JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId, reason } })
}
