// What a handler holds in its hands: every way to ask, record and report in a flow.
import type { CreateMessageRequestParams, CreateMessageResult, Root } from '../protocol/messages.ts'
import type { Output, Schema } from '../schema/standard.ts'
import { derivedRandom, derivedUuid, visitToken } from './derive.ts'
import { byHandOutcome, InputRequired, RoundResponses } from './by-hand.ts'
import { parked } from './call.ts'
import { Declined, questionInvalid } from './errors.ts'
import type { Action } from './journal.ts'
import type { Outcome } from './carrier.ts'
import type { Pass } from './pass.ts'
import { SCOPE_SEPARATOR } from './scopes.ts'
import type { Capability, Form, VisitOptions } from './question.ts'
import { checkMessage, checkUrl, FormQuestion, RootsQuestion, prepareForm, VisitQuestion } from './question.ts'
import { SampleQuestion } from './sampling.ts'
import { scheduler } from './scheduler.ts'
import type { LogLevel, StepContext, StepOptions } from './step.ts'
import { stepOnce, StepScene } from './step.ts'

/** Schemas of the questions a handler asks, by key: declared once, checked when the app is built. */
export type Asks = Readonly<Record<string, Schema>>

/** A declared key, or one with an index for use in a loop: `item`, `item[3]`. */
export type AskKey<A extends Asks> = (keyof A & string) | `${keyof A & string}[${string}]`

type AskOutput<A extends Asks, K> = K extends keyof A
  ? Output<A[K]>
  : K extends `${infer Name}[${string}]`
    ? Name extends keyof A
      ? Output<A[Name]>
      : never
    : never

export type ElicitationAnswer<T> = { action: 'accept'; content: T } | { action: 'decline' } | { action: 'cancel' }

export type ChoiceOption = string | { readonly value: string; readonly title: string }
type ChoiceValue<C> = C extends { readonly value: infer V } ? V : C

const CONFIRM = prepareForm(
  { type: 'object', properties: { confirm: { type: 'boolean', title: 'Confirm' } }, required: ['confirm'] },
  'io.confirm',
)

const FIRST_LOOK_MS = 100
const LONGEST_LOOK_MS = 1_000
const DEFAULT_WAIT_MS = 10_000

export class Io<A extends Asks = Asks> {
  readonly #pass: Pass
  readonly #prefix: string
  readonly #forms: ReadonlyMap<string, Form>

  constructor(pass: Pass, prefix = '', forms = pass.input.forms) {
    this.#pass = pass
    this.#prefix = prefix
    this.#forms = forms
  }

  /** A scope whose questions are declared with it and not with the handler: what a resolver runs in. */
  static within<T>(io: Io, key: string, forms: ReadonlyMap<string, Form>, run: (io: Io) => T | Promise<T>): Promise<T> {
    const fullKey = io.#prefix + key
    return io.#pass.scope(fullKey, () => run(new Io(io.#pass, fullKey + SCOPE_SEPARATOR, forms)))
  }

  /** The accepted, validated answer. A decline or cancel throws `Declined`. */
  ask<K extends AskKey<A>>(key: K, message: string): Promise<AskOutput<A, K>>
  ask<S extends Schema>(key: string, message: string, schema: S): Promise<Output<S>>
  ask(key: string, message: string, schema?: Schema): Promise<unknown> {
    return this.#form(key, message, schema, (action, value) => {
      if (action !== 'accept') throw new Declined(this.#prefix + key, action)
      return value
    })
  }

  /** What the user did: `accept` with content, `decline` or `cancel`. */
  elicit<K extends AskKey<A>>(key: K, message: string): Promise<ElicitationAnswer<AskOutput<A, K>>>
  elicit<S extends Schema>(key: string, message: string, schema: S): Promise<ElicitationAnswer<Output<S>>>
  elicit(key: string, message: string, schema?: Schema): Promise<unknown> {
    return this.#form(key, message, schema, (action, value) =>
      action === 'accept' ? { action, content: value } : { action },
    )
  }

  /** Yes or no. A decline is a no; a cancel throws `Declined`. */
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

  /** One of the options. A decline or cancel throws `Declined`. */
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
   * Sends the user to a page. Acceptance is consent, not completion: it settles once `done` holds, which is tried for a
   * while in each round. The token is derived from the flow and known to nobody else, so the page can check who came.
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
            'it needs { done }, a function that tells whether what the user went for has happened',
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

  /** What the client's model said. */
  sample(key: string, params: CreateMessageRequestParams): Promise<CreateMessageResult> {
    if (!this.#pass.checkKey(key)) return parked()
    return this.#pass.ask(this.#prefix + key, () => new SampleQuestion(params, key), accepted)
  }

  /** The client's roots. */
  roots(key: string): Promise<Root[]> {
    if (!this.#pass.checkKey(key)) return parked()
    return this.#pass.ask(this.#prefix + key, () => new RootsQuestion(), accepted)
  }

  /**
   * Does a side effect and records its result, so that no later pass does it again. At least once: use the idempotency
   * key, or give a store that every instance shares, `{ once: store }`, to have it done by one pass only.
   */
  step<T>(key: string, run: (context: StepContext) => T | Promise<T>, { once }: StepOptions = {}): Promise<T> {
    if (!this.#pass.checkKey(key)) return parked()
    const fullKey = this.#prefix + key
    const scene = new StepScene(this.#pass, fullKey)
    if (once === undefined) return this.#pass.step(fullKey, () => run(scene))
    return this.#pass.step(fullKey, () =>
      stepOnce(
        once,
        `step:${scene.idempotencyKey}`,
        () => this.#pass.ended,
        () => run(scene),
      ),
    )
  }

  /** A group with its own keys. Its value is recorded, and its contents then leave the journal. */
  scope<T>(key: string, run: (io: Io<A>) => T | Promise<T>): Promise<T> {
    if (!this.#pass.checkKey(key)) return parked()
    const fullKey = this.#prefix + key
    const inner = new Io<A>(this.#pass, fullKey + SCOPE_SEPARATOR, this.#forms)
    return this.#pass.scope(fullKey, () => run(inner))
  }

  /** The answers of this round, for a handler that takes its rounds by hand and returns `inputRequired(...)`. */
  get responses(): RoundResponses {
    return new RoundResponses(this.#pass.input)
  }

  /** When the last answer or step settled, in milliseconds: the same on every pass. */
  now(): number {
    return this.#pass.now
  }

  /** A number in [0, 1), the same on every pass. */
  random(key: string): number {
    return this.#pass.checkKey(key) ? derivedRandom(this.#pass.input.flow.id, this.#prefix + key) : 0
  }

  /** The same on every pass. */
  uuid(key: string): string {
    return this.#pass.checkKey(key) ? derivedUuid(this.#pass.input.flow.id, this.#prefix + key) : ''
  }

  progress(progress: number, total?: number, message?: string): void {
    if (!this.#pass.silent) this.#pass.input.progress?.(progress, total, message)
  }

  log(level: LogLevel, data: unknown, logger?: string): void {
    if (!this.#pass.silent) this.#pass.input.log?.(level, data, logger)
  }

  /** What the client declared in the flow's first round, to offer something else instead of failing. */
  can(capability: Capability): boolean {
    return this.#pass.input.flow.declared(capability)
  }

  get revision(): string {
    return this.#pass.input.flow.revision
  }

  /** "Hand me over here if you are draining or overloaded." */
  yield(): Promise<void> {
    return this.#pass.yield()
  }

  /**
   * Goes on as a task from here: the client gets a handle at once, and what follows is done in the background, on any
   * instance. Where no task is possible it goes on as it is and gives `false`; `{ required: true }` ends the call instead.
   */
  detach({ required = false }: { required?: boolean } = {}): Promise<boolean> {
    return this.#pass.detach(required)
  }

  /** Cleans up when a pass ends before the handler does. */
  onSuspend(cleanUp: () => void): void {
    this.#pass.onSuspend(cleanUp)
  }

  /** Aborted when the call is cancelled or over for good, never on suspension. */
  get signal(): AbortSignal {
    return this.#pass.signal
  }

  #form(
    key: string,
    message: string,
    schema: Schema | undefined,
    give: (action: Action, value: unknown) => unknown,
  ): Promise<unknown> {
    if (!this.#pass.checkKey(key)) return parked()
    return this.#pass.ask(
      this.#prefix + key,
      () => new FormQuestion(checkMessage(message, key), schema ? prepareForm(schema, key) : this.#declared(key)),
      give,
    )
  }

  #declared(key: string): Form {
    const forms = this.#forms
    const form = forms.get(key) ?? forms.get(key.slice(0, Math.max(key.indexOf('['), 0)))
    if (form === undefined) {
      throw questionInvalid(key, 'it has no schema; declare one under "asks", or give it as the third argument')
    }
    return form
  }

  async #completed(token: string, { done, waitMs = DEFAULT_WAIT_MS }: VisitOptions): Promise<boolean> {
    const { signal } = this.#pass
    const clock = this.#pass.input.scheduler ?? scheduler
    let waited = 0
    for (let pause = FIRST_LOOK_MS; !this.#pass.ended; pause = Math.min(pause * 2, LONGEST_LOOK_MS)) {
      if (await done({ token, signal })) return true
      if (waited + pause > waitMs) return false
      await clock.sleep(pause, signal)
      waited += pause
    }
    return false
  }
}

/** Runs a handler, once and from its top. */
export function startPass(pass: Pass, handler: (io: Io) => unknown): void {
  pass.start(() => handler(new Io(pass)), conclude)
}

function conclude(value: unknown, pass: Pass): Outcome {
  return value instanceof InputRequired ? byHandOutcome(value, pass) : { kind: 'done', value }
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
