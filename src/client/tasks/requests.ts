// The requests about tasks. All of them may be repeated when a response was lost: reading changes nothing, and the server
// ignores a repeated answer or cancellation.
import { backoff } from '../../protocol/backoff.ts'
import { INTERNAL_ERROR, INVALID_PARAMS, ProtocolError } from '../../protocol/errors.ts'
import type { Logger } from '../../protocol/logger.ts'
import { shown } from '../../protocol/text.ts'
import type { CheckedAnswers } from '../answers/answering.ts'
import type { ClientCall } from '../call.ts'
import type { ClientRequest, Connection, ServerResult } from '../connection.ts'
import type { Deadline } from '../deadline.ts'
import { ClientError, isConnectionLoss } from '../errors.ts'
import type { NotificationListener } from '../notifications.ts'
import { checkComplete } from '../round.ts'
import type { RpcResponse } from '../transports/transport.ts'
import type { TaskOptions } from '../options.ts'
import type { SendTaskRequest } from './dialect.ts'
import type { TaskState } from './state.ts'
import { readTaskState } from './state.ts'

const BACKGROUND_CANCEL_MS = 5_000

const RETRY = { firstMs: 250, maxMs: 15_000, jitter: [1, 1.25] } as const

interface TaskRequest {
  readonly method: 'tasks/get' | 'tasks/update' | 'tasks/cancel'
  readonly id: string
  readonly inputResponses?: CheckedAnswers
  readonly timeoutMs: number
}

export class TaskRequests {
  readonly #connection: Connection
  /** The limit for one response, and for the time that the server may be out of reach. */
  readonly #timeoutMs: number
  readonly #logger: Logger
  readonly #cancellations = new Set<Promise<void>>()

  constructor(connection: Connection, timeoutMs: number, logger: Logger) {
    this.#connection = connection
    this.#timeoutMs = timeoutMs
    this.#logger = logger
  }

  /** Does not retry. */
  async get(id: string, deadline: Deadline): Promise<TaskState> {
    const { taskDialect } = this.#connection
    if (taskDialect !== undefined) return readTaskState(await taskDialect.get(id, this.#sender(id, deadline)), id)
    const result = await this.#request({ method: 'tasks/get', id, timeoutMs: this.#timeoutMs }, deadline)
    return readTaskState(result, id)
  }

  /** True if the server asks its questions while the client waits for the result. */
  get asksWhileWaiting(): boolean {
    return this.#connection.taskDialect?.questions === 'live'
  }

  /** Waits until the task has ended, for such a server. Its questions go to the answerers, as those of the call. */
  async wait(
    id: string,
    call: ClientCall | undefined,
    deadline: Deadline,
    onProgress: TaskOptions['onProgress'],
  ): Promise<void> {
    const request = { method: 'tasks/result', name: id, params: { taskId: id }, call, isIdempotent: true, onProgress }
    await this.#connection.request(request, deadline)
  }

  async update(id: string, inputResponses: CheckedAnswers, deadline: Deadline): Promise<void> {
    const { taskDialect } = this.#connection
    if (taskDialect !== undefined) {
      return this.retry(deadline, () =>
        taskDialect.update(id, inputResponses, this.#sender(id, deadline), (write) => this.#connection.post(write)),
      )
    }
    const request = { method: 'tasks/update', id, inputResponses, timeoutMs: this.#timeoutMs } as const
    await this.retry(deadline, () => this.#request(request, deadline))
  }

  async cancel(id: string, deadline: Deadline): Promise<void> {
    const request = { method: 'tasks/cancel', id, timeoutMs: this.#timeoutMs } as const
    await this.retry(deadline, () => this.#request(request, deadline))
  }

  /** Cancels once, for a caller that does not wait any more. Only `cancellationsSent` waits for it. */
  cancelInBackground(id: string): void {
    const deadline = this.#connection.openDeadline(`tasks/cancel ${id}`, BACKGROUND_CANCEL_MS, undefined)
    const request = { method: 'tasks/cancel', id, timeoutMs: BACKGROUND_CANCEL_MS } as const
    const cancellation = this.#connection
      .withDeadline(deadline, () => this.#request(request, deadline))
      .then(
        () => {},
        (error: unknown) => {
          if (!isTaskGone(error)) this.#logger.warn('A task could not be cancelled and may still run.', { id, error })
        },
      )
      .finally(() => this.#cancellations.delete(cancellation))
    this.#cancellations.add(cancellation)
  }

  /** Resolves when all background cancellations are done, in a bounded time. Returns undefined if there are none. */
  cancellationsSent(): Promise<unknown> | undefined {
    return this.#cancellations.size === 0 ? undefined : Promise.all(this.#cancellations)
  }

  /** Calls the listener with each change of the task, until the stream ends. */
  listen(id: string, deadline: Deadline, listener: NotificationListener): Promise<RpcResponse> {
    return this.#connection.listen({ taskIds: [id] }, deadline, listener)
  }

  /** Retries with backoff, for as long as the server may be out of reach. */
  async retry<T>(deadline: Deadline, run: () => Promise<T>): Promise<T> {
    const outage = this.newOutage(deadline)
    for (;;) {
      try {
        return await run()
      } catch (error) {
        await deadline.sleep(outage.delayAfter(error))
      }
    }
  }

  newOutage(deadline: Deadline): Outage {
    return new Outage(deadline, this.#timeoutMs)
  }

  /** For the requests of a legacy server. The error of `tasks/result` may be that of the task itself. */
  #sender(id: string, deadline: Deadline): SendTaskRequest {
    return async (method, params) => {
      const request = { method, name: id, params, isIdempotent: true }
      const related = method === 'tasks/input_response' ? { relatedTask: id } : {}
      try {
        return await this.#send({ ...request, ...related }, this.#timeoutMs, deadline)
      } catch (error) {
        throw method !== 'tasks/result' && isUnknownTask(error) ? taskGone(id, error) : error
      }
    }
  }

  async #request(
    { method, id, inputResponses, timeoutMs }: TaskRequest,
    deadline: Deadline,
  ): Promise<Record<string, unknown>> {
    const params = { taskId: id, ...(inputResponses !== undefined && { inputResponses }) }
    try {
      const result = await this.#send({ method, name: id, params, isIdempotent: true }, timeoutMs, deadline)
      checkComplete(result, method)
      return result
    } catch (error) {
      throw isUnknownTask(error) ? taskGone(id, error) : error
    }
  }

  /** Waits within `deadline`, and at most `timeoutMs`. */
  async #send(request: ClientRequest, timeoutMs: number, deadline: Deadline): Promise<Record<string, unknown>> {
    const connection = this.#connection
    const what = `${request.method} ${request.name}`
    const { result } = await deadline.wait<ServerResult>((resolve, reject) => {
      let isOver = false
      const own = connection.openDeadline(what, timeoutMs, undefined)
      connection
        .withDeadline(own, () => connection.request(request, own))
        .then(
          (response) => {
            if (!isOver) resolve(response)
          },
          (error: Error) => {
            if (!isOver) reject(error)
          },
        )
      return () => {
        isOver = true
        own.abort(new ClientError('ABORTED', `${what} was aborted.`))
      }
    })
    return result
  }
}

/** A time in which the server is out of reach. */
export class Outage {
  readonly #deadline: Deadline
  readonly #maxMs: number
  #failures = 0
  #since = 0

  constructor(deadline: Deadline, maxMs: number) {
    this.#deadline = deadline
    this.#maxMs = maxMs
  }

  /** The server has answered. */
  end(): void {
    this.#failures = 0
  }

  /** Returns the wait before the next attempt. Throws the error if it is permanent, or the outage has lasted too long. */
  delayAfter(error: unknown): number {
    if (!isTransient(error) || this.#deadline.isExpired) throw error
    const now = performance.now()
    if (this.#failures === 0) this.#since = now
    if (now - this.#since >= this.#maxMs) throw error
    this.#failures += 1
    return backoff(this.#failures, RETRY)
  }
}

/** The server is out of reach, has failed, or wants fewer requests. */
function isTransient(error: unknown): boolean {
  if (error instanceof ProtocolError) return error.rpcCode === INTERNAL_ERROR
  if (isConnectionLoss(error)) return true
  if (!(error instanceof ClientError)) return false
  const { code, status = 0 } = error
  return code === 'TIMEOUT' || (code === 'HTTP_STATUS' && (status >= 500 || status === 429))
}

/** True if the server does not know the task. */
export function isTaskGone(error: unknown): error is ClientError {
  return error instanceof ClientError && error.code === 'TASK_GONE'
}

function isUnknownTask(error: unknown): error is ProtocolError {
  return error instanceof ProtocolError && error.rpcCode === INVALID_PARAMS
}

function taskGone(id: string, cause: ProtocolError): ClientError {
  return new ClientError(
    'TASK_GONE',
    `The server has no task ${shown(id)} for this caller; it may have been deleted: ${cause.message}`,
    { cause },
  )
}
