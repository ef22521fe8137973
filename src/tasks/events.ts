// Events from outside: the token that names a task and a key, and what has come for them, in the state of the task.
//
// 1. Whoever has the token may send one event. It says nothing else, and opens nothing else.
// 2. The first event wins. What came is in the store before its sender is told so.
// 3. A token of a task that has ended, was deleted, or whose deadline has passed is refused like a wrong one. If the task was retried, its
//    tokens are good for the task that retries it.
import type { ReceivedEvent } from '../flow/event-source.ts'
import { eventInvalid } from '../flow/errors.ts'
import { RallyError } from '../protocol/errors.ts'
import { isTame, toJsonText } from '../protocol/json.ts'
import type { PayloadCodec } from '../seal/envelope.ts'
import { bindTo, isCount, isText } from '../seal/envelope.ts'
import { InvalidState } from '../seal/errors.ts'
import type { Seal, SealFor } from '../seal/seal.ts'
import { compileJsonSchema } from '../schema/validator.ts'
import type { TaskRecord } from '../store/tasks.ts'
import { isEnd } from '../store/tasks.ts'
import type { TaskEvent, TaskFlowState } from './state.ts'
import { flowStateOf, readState } from './state.ts'

/** The largest value, as JSON. */
const MAX_EVENT_BYTES = 65_536
const MAX_LEVELS = 64
/** The task says when its tokens end. */
const TOKEN_MS = 10 * 365 * 86_400_000
const MAX_TOKEN_BYTES = 4_096

/** What a token names. */
export interface EventAddress {
  readonly taskId: string
  /** Tells the ids of the tasks that retry it, also once it was deleted. Empty in tokens of earlier versions. */
  readonly flowId: string
  readonly key: string
  /** Infinity if the event has no deadline. */
  readonly dueAt: number
}

const isDueAt = (value: unknown): value is number | null => value === null || isCount(value)

const codec: PayloadCodec<EventAddress, [key: string, dueAt: number | null]> = {
  purpose: 'signal',
  name: 'token of an event',
  tests: [isText, isDueAt],
  // As text, which earlier versions ignore: they still take the token.
  write: ({ taskId, flowId, key, dueAt }) => ({
    id: taskId,
    fields: [key, Number.isFinite(dueAt) ? dueAt : null],
    text: flowId,
  }),
  read: ({ id, fields: [key, dueAt], text }) => ({ taskId: id, flowId: text, key, dueAt: dueAt ?? Infinity }),
}

/** What messages call it. */
const VALUE = 'the value of the event'

/** It belongs to no request: whoever has it may use it. */
const BINDING = bindTo('signal', '', undefined)

export class EventTokens {
  readonly #seal: SealFor<EventAddress>

  constructor(seal: Seal) {
    this.#seal = seal.for(codec, { ttl: TOKEN_MS, maxAge: TOKEN_MS, maxBytes: MAX_TOKEN_BYTES })
  }

  mint(address: EventAddress): string {
    const token = this.#seal.mint(address, BINDING)
    if (typeof token === 'string') return token
    // Nobody waits for it.
    token.catch(() => {})
    throw eventInvalid(address.key, 'its token is needed at once, and `codec` is asynchronous. Use `keys`')
  }

  /** Takes anything. Throws EVENT_REFUSED. */
  async open(token: unknown): Promise<EventAddress> {
    try {
      return await this.#seal.open(token, BINDING)
    } catch (error) {
      throw error instanceof InvalidState ? refused(error) : error
    }
  }
}

/** The text of a value that was sent, as JSON. Throws EVENT_MISMATCH if it is too large, and NOT_JSON if JSON loses it or it is too deep. */
export function eventText(value: unknown): string {
  const text = toJsonText(value, VALUE)
  if (!isTame(value, MAX_LEVELS))
    throw new RallyError('NOT_JSON', `${VALUE}: $ is nested past ${MAX_LEVELS} levels. Make it flatter.`)
  const bytes = Buffer.byteLength(text)
  if (bytes <= MAX_EVENT_BYTES) return text
  throw mismatch(`it has ${bytes} bytes, and the limit is ${MAX_EVENT_BYTES}`)
}

/**
 * The state of the task with the event in it. Returns 'repeated' if one has come before. Throws EVENT_REFUSED or EVENT_MISMATCH.
 */
export function receive(
  { state: text, status }: TaskRecord,
  { key, dueAt: mintedDueAt }: Pick<EventAddress, 'key' | 'dueAt'>,
  { value, at }: ReceivedEvent,
): TaskFlowState | 'repeated' {
  const state = readState(text)
  state.events ??= Object.create(null) as Record<string, TaskEvent>
  const before = state.events[key]
  const isRepeated = before !== undefined
  if (isRepeated && (before.value === undefined || isEnd(status))) return 'repeated'
  const wait = flowStateOf(state).waits?.get(key)
  // A retry sets another deadline. A worker that has just handed out the token may not have written the first one yet.
  const dueAt = wait?.event === undefined ? mintedDueAt : wait.dueAt
  // Nor the schema: then the pass checks the value.
  const issuesOf = checkOf(key, wait?.event?.schema)
  if (isRepeated && issuesOf(before.value).length === 0) return 'repeated'
  if (isEnd(status) || at > dueAt) throw refused()
  const issues = issuesOf(value)
  if (issues.length > 0) throw mismatch(issues.join('; '))
  // An event that came before the schema, and does not match it, is not the first one.
  state.events[key] = { value, at }
  return state
}

function checkOf(key: string, schema: unknown): (value: unknown) => readonly string[] {
  if (schema === undefined) return () => []
  return compileJsonSchema(schema as Record<string, unknown>, `The schema of the event "${key}"`)
}

/** The event, if no pass has used it yet. */
export function unusedEvent({ events }: TaskFlowState, key: string): ReceivedEvent | undefined {
  const event = events?.[key]
  return event?.value === undefined ? undefined : { value: event.value, at: event.at }
}

/** Says the same for every cause. */
export function refused(cause?: unknown): RallyError {
  return new RallyError(
    'EVENT_REFUSED',
    'app.signal(): the event was refused: its token is wrong or has expired, or its task has ended. Do not send it again.',
    { cause },
  )
}

function mismatch(why: string): RallyError {
  return new RallyError('EVENT_MISMATCH', `The value of the event cannot be used: ${why}.`)
}
