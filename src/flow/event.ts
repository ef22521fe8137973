// An event from outside: the handler hands out a token, and waits until somebody signals with it.
//
// 1. The token and the due time are set when the event is first reached, and are carried until the flow ends. A retry may set another
//    due time. The token stays.
// 2. The event has its key from the start, so no other call may use it. It counts as waited for once the handler awaits it. What came
//    before is kept until then.
// 3. It settles like an answer: in the order of time, and from the journal in every later pass.
import type { Checked, Schema } from '../schema/standard.ts'
import { jsonSchemaOf } from '../schema/standard.ts'
import { toCheck } from '../schema/validator.ts'
import { toJsonText } from '../protocol/json.ts'
import type { Asking } from './call.ts'
import { parked } from './call.ts'
import type { PassInput } from './carrier.ts'
import { eventInvalid, eventNeedsTask } from './errors.ts'
import type { EventSource } from './event-source.ts'
import type { Fit, Question } from './question.ts'
import type { Deadline } from './timed.ts'
import type { Waits } from './waits.ts'

/** What `io.event()` returns. Hand out the token or the URL in a step, then await it. */
export interface OutsideEvent<T> extends PromiseLike<T> {
  /** Anybody who has it may send the event, once: `app.signal(token, value)`. */
  readonly token: string
  /** Where to POST the event as JSON. `undefined` without the option `tasks.eventsUrl`. */
  readonly url: string | undefined
}

/** What an event needs from its pass. */
export interface EventHost {
  readonly input: PassInput
  readonly waits: Waits
  /**
   * Keeps the key for the event until it is asked for. Returns `false` if no event may be created here: the pass has ended, the call was
   * made inside a step, or the key is used.
   */
  reserve(key: string): boolean
  /** The event is asked for next, with its key. */
  unreserve(key: string): void
  ask<T>(key: string, toQuestion: () => Question, give: Asking['give'], within?: Deadline): Promise<T>
  fail(error: unknown, key?: string): Promise<never>
}

/** The largest JSON Schema of an event: it is stored with the task. */
const MAX_SCHEMA_BYTES = 16_384

export function outsideEvent<T>(host: EventHost, key: string, schema: Schema, within?: Deadline): OutsideEvent<T> {
  const { events } = host.input
  if (!host.reserve(key)) return new Pending<T>('', undefined, parked)
  if (events === undefined) return failed(host, eventNeedsTask(key), key)
  try {
    const check = toCheck(schema, `The schema of the event "${key}"`)
    const token = tokenOf(host, events, key, schema, within)
    const question = new EventQuestion(check)
    const start = (): Promise<T> => {
      host.unreserve(key)
      return host.ask(
        key,
        () => question,
        (_action, value) => value,
        within,
      )
    }
    return new Pending(token, events.urlOf(token), start)
  } catch (error) {
    return failed(host, error, key)
  }
}

function failed<T>(host: EventHost, error: unknown, key: string): OutsideEvent<T> {
  void host.fail(error, key)
  return new Pending<T>('', undefined, parked)
}

function tokenOf(host: EventHost, events: EventSource, key: string, schema: Schema, within?: Deadline): string {
  const { input, waits } = host
  const { event, dueAt: carriedDueAt = Infinity } = waits.carried(key) ?? {}
  const isComplete = event?.schema !== undefined && (within === undefined || Number.isFinite(carriedDueAt))
  if (event !== undefined && (isComplete || input.journal.get(key) !== undefined)) return event.token
  // It is new. Or a retry waits for it again: its token is known then, but its schema or its deadline is not.
  const json = jsonSchemaOf(schema, 'input', `The schema of the event "${key}"`)
  const bytes = Buffer.byteLength(toJsonText(json, `The schema of the event "${key}"`))
  if (bytes > MAX_SCHEMA_BYTES) {
    throw eventInvalid(key, `its JSON Schema has ${bytes} bytes, and the limit is ${MAX_SCHEMA_BYTES}`)
  }
  const what = `The deadline of the event "${key}"`
  const dueAt = within === undefined ? Infinity : waits.dueAt(key, within.withinMs, 'ask', what)
  const token = event?.token ?? events.mint(key, dueAt)
  waits.carry(key, { dueAt, event: { token, schema: json } })
  return token
}

/** Not a promise: the flow waits only for what its handler awaits. */
class Pending<T> implements OutsideEvent<T> {
  readonly token: string
  readonly url: string | undefined
  readonly #start: () => Promise<T>
  #promise: Promise<T> | undefined

  constructor(token: string, url: string | undefined, start: () => Promise<T>) {
    this.token = token
    this.url = url
    this.#start = start
  }

  // oxlint-disable-next-line unicorn/no-thenable -- It is awaited like a question.
  then<A = T, B = never>(
    onValue?: ((value: T) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return (this.#promise ??= this.#start()).then(onValue, onError)
  }
}

/** No client is shown it. Its text, and so its pin, is the same for every schema: what has come counts, as with a step. */
class EventQuestion implements Question {
  readonly needs = []
  readonly isEvent = true
  readonly #check: (value: unknown) => Checked<unknown> | Promise<Checked<unknown>>

  constructor(check: (value: unknown) => Checked<unknown> | Promise<Checked<unknown>>) {
    this.#check = check
  }

  text(): string {
    return 'event'
  }

  fit({ value }: Record<string, unknown>): Fit | Promise<Fit> {
    const checked = this.#check(value)
    return checked instanceof Promise ? checked.then(toFit) : toFit(checked)
  }
}

function toFit(checked: Checked<unknown>): Fit {
  return 'issues' in checked ? { misfit: checked.issues.join('; ') } : { action: 'accept', value: checked.value }
}
