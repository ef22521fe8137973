// What is asked of a server about its tasks. All of it may be asked again when it was lost: looking harms nothing, and an
// answer or a cancellation that came already is ignored.
import { INTERNAL_ERROR, INVALID_PARAMS, ProtocolError } from '../../protocol/errors.ts'
import type { Logger } from '../../protocol/logger.ts'
import { ClientError } from '../errors.ts'
import { shown } from '../../protocol/text.ts'
import type { Connection, NotificationListener } from '../connection.ts'
import type { RpcResponse } from '../transports/transport.ts'
import type { Deadline } from '../deadline.ts'
import { checkComplete } from '../round.ts'
import type { TaskState } from './state.ts'
import { readTaskState } from './state.ts'

/** For a cancellation on the way out. */
const LAST_WORDS_MS = 5_000

const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 15_000

type Method = 'tasks/get' | 'tasks/update' | 'tasks/cancel'

export class TaskRequests {
  readonly #connection: Connection
  /** For one answer of the server's, and for how long it may be out of reach. */
  readonly #timeoutMs: number
  readonly #logger: Logger
  readonly #lastWords = new Set<Promise<void>>()

  constructor(connection: Connection, timeoutMs: number, logger: Logger) {
    this.#connection = connection
    this.#timeoutMs = timeoutMs
    this.#logger = logger
  }

  /** Tries it once. */
  async get(id: string, deadline: Deadline): Promise<TaskState> {
    const result = await this.#request('tasks/get', id, '', deadline, this.#timeoutMs)
    return readTaskState(result, id)
  }

  /** `answers` is the text of `inputResponses`. */
  async update(id: string, answers: string, deadline: Deadline): Promise<void> {
    const members = `,"inputResponses":${answers}`
    await this.retry(deadline, () => this.#request('tasks/update', id, members, deadline, this.#timeoutMs))
  }

  async cancel(id: string, deadline: Deadline): Promise<void> {
    await this.retry(deadline, () => this.#request('tasks/cancel', id, '', deadline, this.#timeoutMs))
  }

  /** On behalf of a caller who has gone: tried, and not waited for but by `settled`. */
  cancelInBackground(id: string): void {
    const deadline = this.#connection.openDeadline(`tasks/cancel ${id}`, LAST_WORDS_MS, undefined)
    const words = this.#connection
      .withDeadline(deadline, () => this.#request('tasks/cancel', id, '', deadline, LAST_WORDS_MS))
      .then(
        () => {},
        (error: unknown) => {
          if (!isTaskGone(error)) this.#logger.warn('A task could not be cancelled. It may go on.', { id, error })
        },
      )
      .finally(() => this.#lastWords.delete(words))
    this.#lastWords.add(words)
  }

  /** When all has been said in passing, if anything was. Bounded in time. */
  cancellationsSent(): Promise<unknown> | undefined {
    return this.#lastWords.size === 0 ? undefined : Promise.all(this.#lastWords)
  }

  /** Tells of the task's changes until the stream ends. */
  listen(id: string, attempt: Deadline, listener: NotificationListener): Promise<RpcResponse> {
    return this.#connection.listen(`"notifications":{"taskIds":[${JSON.stringify(id)}]}`, attempt, listener)
  }

  /** Tries again, after longer and longer pauses, for as long as a server may be out of reach. */
  async retry<T>(deadline: Deadline, run: () => Promise<T>): Promise<T> {
    const trouble = this.newOutage(deadline)
    for (;;) {
      try {
        return await run()
      } catch (error) {
        await deadline.sleep(trouble.delayAfter(error))
      }
    }
  }

  newOutage(deadline: Deadline): Outage {
    return new Outage(deadline, this.#timeoutMs)
  }

  /** A wait within that of `deadline`, with a limit of its own. */
  async #request(
    method: Method,
    id: string,
    more: string,
    deadline: Deadline,
    timeoutMs: number,
  ): Promise<Record<string, unknown>> {
    const connection = this.#connection
    const request = { method, name: id, members: `"taskId":${JSON.stringify(id)}${more}`, isIdempotent: true }
    try {
      const { result } = await deadline.wait<{ result: Record<string, unknown> }>((resolve, reject) => {
        let isOver = false
        const attempt = connection.openDeadline(`${method} ${id}`, timeoutMs, undefined)
        connection
          .withDeadline(attempt, () => connection.request(request, attempt))
          .then(
            (answered) => {
              if (!isOver) resolve(answered)
            },
            (error: Error) => {
              if (!isOver) reject(error)
            },
          )
        return () => {
          isOver = true
          attempt.abort(new ClientError('ABORTED', `${method} is not waited for any more.`))
        }
      })
      checkComplete(result, method)
      return result
    } catch (error) {
      throw isUnknown(error) ? gone(id, error) : error
    }
  }
}

/** How long a server has been out of reach. */
export class Outage {
  readonly #deadline: Deadline
  readonly #mostMs: number
  #count = 0
  #since = 0

  constructor(deadline: Deadline, mostMs: number) {
    this.#deadline = deadline
    this.#mostMs = mostMs
  }

  end(): void {
    this.#count = 0
  }

  /** Milliseconds until the next try. Throws the error where it will not pass, or has gone on for too long. */
  delayAfter(error: unknown): number {
    if (!isPassing(error) || this.#deadline.isExpired) throw error
    const now = performance.now()
    if (this.#count === 0) this.#since = now
    if (now - this.#since >= this.#mostMs) throw error
    this.#count += 1
    return Math.min(FIRST_PAUSE_MS * 2 ** (this.#count - 1), LONGEST_PAUSE_MS) * (1 + Math.random() / 4)
  }
}

/** The server is not there, or not well, or asked too often. */
function isPassing(error: unknown): boolean {
  if (error instanceof ProtocolError) return error.rpcCode === INTERNAL_ERROR
  if (!(error instanceof ClientError)) return false
  const { code, status = 0 } = error
  return (
    ['LOST', 'CONNECTION', 'TIMEOUT'].includes(code) || (code === 'HTTP_STATUS' && (status >= 500 || status === 429))
  )
}

/** Whether the server does not know the task. */
export function isTaskGone(error: unknown): error is ClientError {
  return error instanceof ClientError && error.code === 'TASK_GONE'
}

function isUnknown(error: unknown): error is ProtocolError {
  return error instanceof ProtocolError && error.rpcCode === INVALID_PARAMS
}

function gone(id: string, cause: ProtocolError): ClientError {
  return new ClientError(
    'TASK_GONE',
    `The server has no task ${shown(id)} for this caller, or none any more: ${cause.message}`,
    { cause },
  )
}
