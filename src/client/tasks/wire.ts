// What is asked of a server about its tasks. All of it may be asked again when it was lost: looking harms nothing, and an
// answer or a cancellation that came already is ignored.
import { INTERNAL_ERROR, INVALID_PARAMS, ProtocolError } from '../../protocol/errors.ts'
import type { Logger } from '../../protocol/logger.ts'
import { ClientError, shown } from '../errors.ts'
import type { Link, Listener } from '../link.ts'
import type { Answered } from '../transports/transport.ts'
import type { Deadline } from '../deadline.ts'
import { checkComplete } from '../round.ts'
import type { TaskState } from './state.ts'
import { readTaskState } from './state.ts'

/** For a cancellation on the way out. */
const LAST_WORDS_MS = 5_000

const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 15_000

type Method = 'tasks/get' | 'tasks/update' | 'tasks/cancel'

export class TaskWire {
  readonly #link: Link
  /** For one answer of the server's, and for how long it may be out of reach. */
  readonly #timeoutMs: number
  readonly #logger: Logger
  readonly #lastWords = new Set<Promise<void>>()

  constructor(link: Link, timeoutMs: number, logger: Logger) {
    this.#link = link
    this.#timeoutMs = timeoutMs
    this.#logger = logger
  }

  /** Tries it once. */
  async get(id: string, life: Deadline): Promise<TaskState> {
    const result = await this.#request('tasks/get', id, '', life, this.#timeoutMs)
    return readTaskState(result, id)
  }

  /** `answers` is the text of `inputResponses`. */
  async update(id: string, answers: string, life: Deadline): Promise<void> {
    const members = `,"inputResponses":${answers}`
    await this.persist(life, () => this.#request('tasks/update', id, members, life, this.#timeoutMs))
  }

  async cancel(id: string, life: Deadline): Promise<void> {
    await this.persist(life, () => this.#request('tasks/cancel', id, '', life, this.#timeoutMs))
  }

  /** On behalf of a caller who has gone: tried, and not waited for but by `settled`. */
  cancelInPassing(id: string): void {
    const life = this.#link.begin(`tasks/cancel ${id}`, LAST_WORDS_MS, undefined)
    const words = this.#link
      .within(life, () => this.#request('tasks/cancel', id, '', life, LAST_WORDS_MS))
      .then(
        () => {},
        (error: unknown) => {
          if (!isGone(error)) this.#logger.warn('A task could not be cancelled. It may go on.', { id, error })
        },
      )
      .finally(() => this.#lastWords.delete(words))
    this.#lastWords.add(words)
  }

  /** When all has been said in passing, if anything was. Bounded in time. */
  settled(): Promise<unknown> | undefined {
    return this.#lastWords.size === 0 ? undefined : Promise.all(this.#lastWords)
  }

  /** Tells of the task's changes until the stream ends. */
  listen(id: string, attempt: Deadline, listener: Listener): Promise<Answered> {
    return this.#link.listen(`"notifications":{"taskIds":[${JSON.stringify(id)}]}`, attempt, listener)
  }

  /** Tries again, after longer and longer pauses, for as long as a server may be out of reach. */
  async persist<T>(life: Deadline, run: () => Promise<T>): Promise<T> {
    const trouble = this.newTrouble(life)
    for (;;) {
      try {
        return await run()
      } catch (error) {
        await life.pause(trouble.pauseAfter(error))
      }
    }
  }

  newTrouble(life: Deadline): Trouble {
    return new Trouble(life, this.#timeoutMs)
  }

  /** A wait within that of `life`, with a limit of its own. */
  async #request(
    method: Method,
    id: string,
    more: string,
    life: Deadline,
    timeoutMs: number,
  ): Promise<Record<string, unknown>> {
    const link = this.#link
    const request = { method, name: id, members: `"taskId":${JSON.stringify(id)}${more}`, isSafe: true }
    try {
      const { result } = await life.wait<{ result: Record<string, unknown> }>((resolve, reject) => {
        let isOver = false
        const patience = link.begin(`${method} ${id}`, timeoutMs, undefined)
        link
          .within(patience, () => link.request(request, patience))
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
          patience.stop(new ClientError('ABORTED', `${method} is not waited for any more.`))
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
export class Trouble {
  readonly #life: Deadline
  readonly #mostMs: number
  #count = 0
  #since = 0

  constructor(life: Deadline, mostMs: number) {
    this.#life = life
    this.#mostMs = mostMs
  }

  over(): void {
    this.#count = 0
  }

  /** Milliseconds until the next try. Throws the error where it will not pass, or has gone on for too long. */
  pauseAfter(error: unknown): number {
    if (!isPassing(error) || this.#life.isSpent) throw error
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
export function isGone(error: unknown): error is ClientError {
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
