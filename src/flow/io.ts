// The `io` of a handler: every way to ask, record and report in a flow.
import type { CreateMessageRequestParams, CreateMessageResult, Root } from '../protocol/messages.ts'
import { isObject } from '../protocol/json.ts'
import type { Output, Schema } from '../schema/standard.ts'
import { derivedRandom, derivedUuid, visitToken } from './derive.ts'
import type { RetryPolicy } from './retry.ts'
import { retryPolicy } from './retry.ts'
import { asInputRequired, byHandOutcome, InputRequired, RoundResponses } from './by-hand.ts'
import { parked } from './call.ts'
import type { Caller, ClientInfo } from './caller.ts'
import { Declined, functionMissing, questionInvalid } from './errors.ts'
import type { OutsideEvent } from './event.ts'
import { outsideEvent } from './event.ts'
import type { Kept, Recordable } from './lossless.ts'
import type { Action } from './journal.ts'
import type { Outcome } from './carrier.ts'
import type { Pass } from './pass.ts'
import type { ReturnedPass } from './phase.ts'
import { SCOPE_SEPARATOR } from './scopes.ts'
import type { Capability, Form, VisitOptions } from './question.ts'
import { checkMessage, checkUrl, FormQuestion, RootsQuestion, prepareForm, VisitQuestion } from './question.ts'
import { SampleQuestion } from './sampling.ts'
import { scheduler } from './scheduler.ts'
import type { LogLevel, StepContext, StepOptions } from './step.ts'
import { checkStepOptions, stepOnce, StepScene } from './step.ts'

/** Schemas of the questions that a handler asks, by key. Checked when the app is built. */
export type Asks = Readonly<Record<string, Schema>>

/** The answers to declared questions, by key, or by key with an index for use in a loop: `item`, `item[3]`. */
export type Answers<A extends Asks> = { readonly [K in keyof A & string as K | `${K}[${string}]`]: Output<A[K]> }

/** What `io.elicit` returns: unlike `io.ask`, it does not throw if the user declines. */
export type ElicitationAnswer<T> = { action: 'accept'; content: T } | { action: 'decline' } | { action: 'cancel' }

/** A deadline of a question. */
export interface AskOptions<F> {
  /** How long the question is open, in milliseconds, from when it is first reached. */
  readonly withinMs: number
  /** The result when no answer has come until then, a JSON value. Default: `Expired` is thrown. */
  readonly otherwise?: Kept<F>
}

/** Not `undefined`, which counts as no `otherwise`. With `null` beside it, TypeScript infers `false` and not `boolean`. */
type Fallback = {} | null

/** One option of `io.choose`: the value, with a title for people if they should read something else. */
export type ChoiceOption = string | { readonly value: string; readonly title: string }
type ChoiceValue<C> = C extends { readonly value: infer V } ? V : C

const CONFIRM = prepareForm(
  { type: 'object', properties: { confirm: { type: 'boolean', title: 'Confirm' } }, required: ['confirm'] },
  'io.confirm',
)

/** How often a visit calls `done`: first soon, then less often. */
const FIRST_POLL_MS = 100
const LONGEST_POLL_MS = 1_000
const DEFAULT_WAIT_MS = 10_000

/** Of a pass without a source, as in a test. */
const UNKNOWN_CLIENT: ClientInfo = {
  name: undefined,
  version: undefined,
  revision: '',
  capabilities: {},
  extensions: {},
}
const NO_META = Object.freeze({})
const NO_OPTIONS: StepOptions = Object.freeze({})

/** The second argument of every handler: asks, does steps, waits, and knows the caller. */
export class Io<A extends Asks = {}> {
  /** Never set. It lets TypeScript pass this `io` to a helper that asks fewer questions, and to no helper that asks more. */
  declare readonly '~asks'?: A
  readonly #pass: Pass
  readonly #prefix: string
  readonly #forms: ReadonlyMap<string, Form>

  constructor(pass: Pass, prefix = '', forms = pass.input.forms) {
    this.#pass = pass
    this.#prefix = prefix
    this.#forms = forms
  }

  /** A scope with declared questions of its own. The needs of a handler are resolved in one each. */
  static within<T>(io: Io, key: string, forms: ReadonlyMap<string, Form>, run: (io: Io) => T | Promise<T>): Promise<T> {
    const fullKey = io.#prefix + key
    io.#pass.hasNeeds = true
    return io.#pass.scope(fullKey, () => run(new Io(io.#pass, fullKey + SCOPE_SEPARATOR, forms)))
  }

  /**
   * Asks the user to fill in a form. Returns the accepted and validated answer; throws `Declined` if the user declines or cancels.
   * An answer that does not match the schema is asked for again, three times at most.
   *
   * Without a schema, the key must be one of the tool's `asks`. With `{ withinMs }` the question is open for so long, from when
   * it is first reached: then the result is `otherwise`, or `Expired` is thrown. Default: no deadline.
   *
   * @example
   * const { env } = await io.ask('env', 'Where to?', z.object({ env: z.enum(['staging', 'prod']) }))
   */
  ask<K extends keyof Answers<A>>(key: K, message: string): Promise<Answers<A>[K]>
  ask<K extends keyof Answers<A>, F extends Fallback = never>(
    key: K,
    message: string,
    options: AskOptions<F>,
  ): Promise<Answers<A>[K] | F>
  ask<S extends Schema>(key: string, message: string, schema: S): Promise<Output<S>>
  ask<S extends Schema, F extends Fallback = never>(
    key: string,
    message: string,
    schema: S,
    options: AskOptions<F>,
  ): Promise<Output<S> | F>
  ask(
    key: string,
    message: string,
    third?: Schema | AskOptions<unknown>,
    fourth?: AskOptions<unknown>,
  ): Promise<unknown> {
    const [schema, options] = isAskOptions(third) ? [undefined, third] : [third, fourth]
    const give = (action: Action, value: unknown): unknown => {
      if (action !== 'accept') throw new Declined(this.#prefix + key, action)
      return value
    }
    return this.#form(key, message, schema, give, options)
  }

  /**
   * Like `ask`, but a decline or cancel does not throw. Returns what the user did: `accept` with the validated `content`, `decline`
   * or `cancel`.
   *
   * @example
   * const answer = await io.elicit('address', 'Ship to?', Address)
   * const address = answer.action === 'accept' ? answer.content : account.address
   */
  elicit<K extends keyof Answers<A>>(key: K, message: string): Promise<ElicitationAnswer<Answers<A>[K]>>
  elicit<S extends Schema>(key: string, message: string, schema: S): Promise<ElicitationAnswer<Output<S>>>
  elicit(key: string, message: string, schema?: Schema): Promise<unknown> {
    return this.#form(key, message, schema, (action, value) =>
      action === 'accept' ? { action, content: value } : { action },
    )
  }

  /**
   * Asks the user yes or no. A decline is a no; a cancel throws `Declined`.
   *
   * @example
   * if (!(await io.confirm('sure', `Delete ${count} files?`))) return 'Nothing was deleted.'
   */
  confirm(key: string, message: string): Promise<boolean> {
    if (!this.#pass.checkKey(key)) return parked()
    return this.#pass.ask(
      this.#prefix + key,
      () => new FormQuestion(checkMessage(message, key), CONFIRM),
      (action, value) => {
        if (action === 'cancel') throw new Declined(this.#prefix + key, action)
        return action === 'accept' && (value as { confirm: boolean }).confirm
      },
    )
  }

  /**
   * Asks the user to pick one of the options, and returns its value. A decline or cancel throws `Declined`.
   *
   * @example
   * const size = await io.choose('size', 'Which size?', ['S', 'M', { value: 'L', title: 'Large' }])
   */
  choose<const C extends ChoiceOption>(key: string, message: string, options: readonly C[]): Promise<ChoiceValue<C>> {
    if (!this.#pass.checkKey(key)) return parked()
    return this.#pass.ask(
      this.#prefix + key,
      () => new FormQuestion(checkMessage(message, key), choiceForm(key, options)),
      (action, value) => {
        if (action !== 'accept') throw new Declined(this.#prefix + key, action)
        return (value as { choice: unknown }).choice
      },
    )
  }

  /**
   * Sends the user to a web page, and resolves when `done` returns `true`. Accepting only means that the user agrees to open the
   * page. Each round calls `done` repeatedly for `waitMs` (default 10 000) and then asks again. A decline or cancel throws `Declined`.
   *
   * The token is secret, and the same in every round of the flow. Put it into the URL, so that the page knows which call the
   * visitor belongs to.
   *
   * @example
   * await io.visit('pay', 'Please pay.', (token) => `https://shop.example/pay?t=${token}`, {
   *   done: ({ token }) => payments.isPaid(token),
   * })
   */
  visit(key: string, message: string, url: string | ((token: string) => string), options: VisitOptions): Promise<void> {
    if (!this.#pass.checkKey(key)) return parked()
    const fullKey = this.#prefix + key
    return this.#pass.ask(
      fullKey,
      () => {
        if (typeof options?.done !== 'function') {
          throw questionInvalid(
            key,
            'it needs `done`, a function that returns true once the user has completed the visit',
          )
        }
        const token = visitToken(this.#pass.input.flow.id, fullKey)
        const address = checkUrl(typeof url === 'function' ? url(token) : url, key)
        return new VisitQuestion(checkMessage(message, key), address, () => this.#completed(token, options))
      },
      (action) => {
        if (action !== 'accept') throw new Declined(fullKey, action)
      },
    )
  }

  /**
   * Asks the client's model, and returns its message. Needs the capability `sampling`.
   *
   * @example
   * const { content } = await io.sample('title', {
   *   messages: [{ role: 'user', content: { type: 'text', text: 'Suggest a title.' } }],
   *   maxTokens: 50,
   * })
   */
  sample(key: string, params: CreateMessageRequestParams): Promise<CreateMessageResult> {
    if (!this.#pass.checkKey(key)) return parked()
    return this.#pass.ask(this.#prefix + key, () => new SampleQuestion(params, key), accepted)
  }

  /** Asks the client for its roots: the folders and files that the server may use. Needs the capability `roots`. */
  roots(key: string): Promise<Root[]> {
    if (!this.#pass.checkKey(key)) return parked()
    return this.#pass.ask(this.#prefix + key, () => new RootsQuestion(), accepted)
  }

  /**
   * Runs a side effect and records its result, so that no later pass runs it again. The result must be JSON, which its type
   * has to show: see `Recordable`. If the function throws, that is recorded too, and the call rejects with `StepFailed`.
   *
   * A step runs at least once: if the process dies before the result is recorded, the next pass runs it again. Pass
   * `idempotencyKey` on to other services. With `{ once: store }`, passes on all instances that share the store agree on which
   * of them runs it. Default: no store.
   *
   * With `{ retries }` a step that throws is run again, after a wait that grows. With `{ timeoutMs }` an attempt fails that takes
   * longer. Default: one attempt, without a limit of its own, or what `rally({ steps })` says.
   *
   * @example
   * const order = await io.step('order', ({ idempotencyKey }) => shop.order(items, { idempotencyKey }), { retries: 3 })
   */
  step<T>(key: string, run: (context: StepContext) => Recordable<T>, options?: StepOptions): Promise<T> {
    const pass = this.#pass
    if (!pass.checkKey(key)) return parked()
    const fullKey = this.#prefix + key
    if (typeof run !== 'function')
      return pass.fail(functionMissing(fullKey, run, 'io.step(key, run, options)'), fullKey)
    const policy = this.#policyOf(key, options)
    const { once } = options ?? NO_OPTIONS
    if (once === undefined) return pass.step(fullKey, (attempt) => run(new StepScene(pass, fullKey, attempt)), policy)
    return pass.step(
      fullKey,
      (attempt) => {
        const scene = new StepScene(pass, fullKey, attempt)
        const own = {
          outages: pass.input.outages,
          gaveUp: () => pass.ended || attempt.state === 'timed out',
          timeout: attempt.timeout,
          fail: (error: unknown) => pass.fail(error, fullKey),
        }
        return stepOnce(once, `step:${scene.idempotencyKey}`, own, () => run(scene))
      },
      policy,
    )
  }

  /**
   * Waits for a time in milliseconds, or until a date. The due time is set when the call is first reached, and holds over all
   * passes. In a task the worker is released meanwhile, and any instance continues: it may sleep as long as the store keeps it
   * (`tasks.ttlMs`, a day). A plain call waits within its time limit.
   *
   * @example
   * await io.detach({ required: true })
   * await io.sleep('night', 8 * 3_600_000)
   */
  sleep(key: string, until: number | Date): Promise<void> {
    return this.#pass.checkKey(key) ? this.#pass.sleep(this.#prefix + key, until) : parked()
  }

  /**
   * Waits for an event from outside, such as a payment or the approval of a manager. Returns at once, with a `token` and a `url` to
   * hand out in a step. `await` it like a question: the value is what somebody sent with `app.signal(token, value)`, or by a POST to
   * the URL, checked against the schema. Needs a task. With `{ withinMs }` it is open for so long, from when it is first reached:
   * then the result is `otherwise`, or `Expired` is thrown. Default: no deadline.
   *
   * @example
   * const paid = io.event('paid', z.object({ amount: z.number() }), { withinMs: 12 * 3_600_000 })
   * await io.step('invoice', () => sendInvoice(paid.url))
   * const { amount } = await paid
   */
  event<S extends Schema>(key: string, schema: S): OutsideEvent<Output<S>>
  event<S extends Schema, F extends Fallback = never>(
    key: string,
    schema: S,
    options: AskOptions<F>,
  ): OutsideEvent<Output<S> | F>
  event(key: string, schema: Schema, options?: AskOptions<unknown>): OutsideEvent<unknown> {
    const pass = this.#pass
    return outsideEvent(pass, pass.checkKey(key) ? this.#prefix + key : '', schema, options)
  }

  /**
   * Groups calls under a prefix, so that their keys need to be unique only inside the scope. When the scope is done, its value
   * is recorded and the calls inside it leave the journal. Use it to keep the journal small, or to reuse a helper that asks.
   *
   * @example
   * for (const [index, item] of items.entries()) {
   *   await io.scope(`item[${index}]`, async (io) => io.step('ship', () => ship(item)))
   * }
   */
  scope<T>(key: string, run: (io: Io<A>) => Recordable<T>): Promise<T> {
    if (!this.#pass.checkKey(key)) return parked()
    const fullKey = this.#prefix + key
    if (typeof run !== 'function') return this.#pass.fail(functionMissing(fullKey, run, 'io.scope(key, run)'), fullKey)
    const inner = new Io<A>(this.#pass, fullKey + SCOPE_SEPARATOR, this.#forms)
    return this.#pass.scope(fullKey, () => run(inner))
  }

  /**
   * The answers of this round, for a handler that takes its rounds by hand: it returns `inputRequired(...)` instead of asking
   * through io.
   *
   * @example
   * const name = io.responses.accepted('name', Name)
   * if (name === undefined) return inputRequired({ inputRequests: { name: elicit('Your name?', Name) } })
   */
  get responses(): RoundResponses {
    return new RoundResponses(this.#pass.input)
  }

  /**
   * Who is calling: the principal, and the scopes and claims that `authenticate` returned. `undefined` if the caller is anonymous.
   *
   * The principal is the same in every round. Scopes and claims are those of the request being served, and a refreshed token may
   * change them: use them only to refuse. Read in a step what picks a branch, a key or a text.
   *
   * @example
   * if (!io.caller?.scopes.includes('expenses:approve')) throw new ToolError('You may not approve expenses.')
   * const department = await io.step('department', () => io.caller?.claims['department'])
   */
  get caller(): Caller | undefined {
    return this.#pass.input.source?.caller
  }

  /** The program that calls, as it describes itself. The same in every round, as it was when the flow first read it. */
  get client(): ClientInfo {
    return this.#pass.client ?? UNKNOWN_CLIENT
  }

  /** The `_meta` of the request being served: what the client sent beside the arguments. It may differ between rounds. */
  get meta(): Readonly<Record<string, unknown>> {
    return this.#pass.input.source?.meta ?? NO_META
  }

  /** The time of the last answer or step, in milliseconds since 1970. The same in every pass: use it instead of `Date.now()`. */
  now(): number {
    return this.#pass.now
  }

  /** A number in [0, 1), the same in every pass: use it instead of `Math.random()`. */
  random(key: string): number {
    return this.#pass.checkKey(key) ? derivedRandom(this.#pass.input.flow.id, this.#prefix + key) : 0
  }

  /** A version 4 UUID, the same in every pass: use it instead of `crypto.randomUUID()`. */
  uuid(key: string): string {
    return this.#pass.checkKey(key) ? derivedUuid(this.#pass.input.flow.id, this.#prefix + key) : ''
  }

  /** Reports progress to the client, if it asked for that. A replay repeats no report. Default: no total, no message. */
  progress(progress: number, total?: number, message?: string): void {
    if (!this.#pass.silent) this.#pass.input.progress?.(progress, total, message)
  }

  /** Sends a log message to the client, if it asked for this level. A replay repeats no message. Default: no logger name. */
  log(level: LogLevel, data: unknown, logger?: string): void {
    if (!this.#pass.silent) this.#pass.input.log?.(level, data, logger)
  }

  /**
   * True if the client declared this capability in the flow's first round. Use it to do without a question that would fail.
   *
   * @example
   * const summary = io.can('sampling') ? await summarize(io, text) : text.slice(0, 500)
   */
  can(capability: Capability): boolean {
    return this.#pass.input.flow.declared(capability)
  }

  /** The protocol revision of the flow's first round, such as `2026-07-28`. */
  get revision(): string {
    return this.#pass.input.flow.revision
  }

  /**
   * Lets another instance continue the flow from here, if this one is draining or overloaded. Otherwise resolves immediately. Call
   * it between long parts of a handler that have no step.
   */
  yield(): Promise<void> {
    return this.#pass.yield()
  }

  /**
   * Continues as a task: the client gets a task id immediately, and the rest of the handler runs in the background, on any
   * instance. Returns `true` in a task. Returns `false` and continues as a plain call if no task is possible, because the app has
   * no store or the client does not support tasks. With `{ required: true }` the call fails instead. Default: false.
   *
   * @example
   * await io.detach()
   * const report = await io.step('report', () => buildReport())
   */
  detach({ required = false }: { required?: boolean } = {}): Promise<boolean> {
    return this.#pass.detach(required)
  }

  /**
   * Calls the function when the pass ends before the handler does, for example at a question. `finally` does not run then.
   *
   * @example
   * const file = await open(path)
   * io.onSuspend(() => void file.close())
   */
  onSuspend(cleanUp: () => void): void {
    this.#pass.onSuspend(cleanUp)
  }

  /** Aborted when the call is cancelled or fails, or this instance stops. Neither a question nor a result aborts it. */
  get signal(): AbortSignal {
    return this.#pass.signal
  }

  #policyOf(key: string, options: StepOptions | undefined): RetryPolicy | undefined {
    const { steps } = this.#pass.input
    if (options === undefined && steps === undefined) return undefined
    try {
      if (options !== undefined) checkStepOptions(options, key)
      return retryPolicy(options ?? NO_OPTIONS, steps)
    } catch (error) {
      void this.#pass.fail(error, key)
      return undefined
    }
  }

  #form(
    key: string,
    message: string,
    schema: Schema | undefined,
    give: (action: Action, value: unknown) => unknown,
    within?: AskOptions<unknown>,
  ): Promise<unknown> {
    if (!this.#pass.checkKey(key)) return parked()
    return this.#pass.ask(
      this.#prefix + key,
      () => new FormQuestion(checkMessage(message, key), schema ? prepareForm(schema, key) : this.#declared(key)),
      give,
      within,
    )
  }

  #declared(key: string): Form {
    const forms = this.#forms
    const form = forms.get(key) ?? forms.get(key.slice(0, Math.max(key.indexOf('['), 0)))
    if (form === undefined) {
      throw questionInvalid(key, 'it has no schema. Declare one under `asks`, or pass it as the third argument')
    }
    return form
  }

  async #completed(token: string, { done, waitMs = DEFAULT_WAIT_MS }: VisitOptions): Promise<boolean> {
    const { signal } = this.#pass
    const clock = this.#pass.input.scheduler ?? scheduler
    let waited = 0
    for (let pause = FIRST_POLL_MS; !this.#pass.ended; pause = Math.min(pause * 2, LONGEST_POLL_MS)) {
      if (await done({ token, signal })) return true
      if (waited + pause > waitMs) return false
      await clock.sleep(pause, signal)
      waited += pause
    }
    return false
  }
}

/** A schema has none of this. Without types, the argument may be anything. */
function isAskOptions(value: unknown): value is AskOptions<unknown> {
  if (!isObject(value) || '~standard' in value || 'type' in value) return false
  return 'withinMs' in value || 'otherwise' in value
}

/** Runs the handler of a pass. */
export function startPass(pass: Pass, handler: (io: Io) => unknown): void {
  pass.start(() => handler(new Io(pass)), { conclude, isResult })
}

function conclude(value: unknown, pass: ReturnedPass): Outcome {
  const required = typeof value === 'object' ? asInputRequired(value) : undefined
  return required === undefined ? { kind: 'done', value } : byHandOutcome(required, pass)
}

/** A handler may throw `inputRequired(...)` instead of returning it. */
function isResult(thrown: unknown): boolean {
  return thrown instanceof InputRequired
}

function accepted(_action: Action, value: unknown): unknown {
  return value
}

function choiceForm(key: string, options: readonly ChoiceOption[]): Form {
  if (options.length === 0) throw questionInvalid(key, 'it has no options to choose from')
  const titled = options.map((option) => (typeof option === 'string' ? { value: option, title: option } : option))
  const choice = options.every((option) => typeof option === 'string')
    ? { type: 'string', enum: options }
    : { type: 'string', oneOf: titled.map(({ value, title }) => ({ const: value, title })) }
  return prepareForm({ type: 'object', properties: { choice }, required: ['choice'] }, key)
}
