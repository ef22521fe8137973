// Rounds by hand: a handler reads the answers of this round itself, and returns what the next one is to ask.
//
// What it asks, how often, and whether an answer still belongs to its question, is its own to decide. It may use steps and
// scopes, which are recorded as ever, but no question of io's: a call takes all of its rounds by hand, or none.
import { toCheck } from '../schema/validator.ts'
import { toJsonText } from '../protocol/json.ts'
import type { CreateMessageRequestParams, CreateMessageResult, Root } from '../protocol/messages.ts'
import type { Checked, Output, Schema } from '../schema/standard.ts'
import { isKey } from './call.ts'
import type { FlowState } from './flow-state.ts'
import { keyInvalid, MissingCapability, mixedStyles, questionInvalid, tooLarge } from './errors.ts'
import type { Action } from './journal.ts'
import type { Outcome } from './carrier.ts'
import type { PassInput } from './carrier.ts'
import type { Pass } from './pass.ts'
import type { Fit, Question } from './question.ts'
import {
  checkMessage,
  checkUrl,
  FormQuestion,
  missingCapabilities,
  pinOf,
  prepareForm,
  RootsQuestion,
  VisitQuestion,
} from './question.ts'
import { readSample, SampleQuestion } from './sampling.ts'

/** What a handler returns to have another round. */
export class InputRequired {
  readonly questions: ReadonlyMap<string, Question>
  /** JSON text, so that what is sealed is what the handler gave, whatever it does with it later. */
  readonly stateText: string | undefined

  constructor(questions: ReadonlyMap<string, Question>, stateText: string | undefined) {
    this.questions = questions
    this.stateText = stateText
  }
}

export interface InputRequiredOptions {
  /** What to ask, by key. Without any, the client simply tries again. */
  inputRequests?: Readonly<Record<string, Question>>
  /** Plain JSON that comes back as `io.responses.state()`: sealed, and bound to caller, request and time. */
  state?: unknown
}

/** Ends this round, and asks for another one. Return it; thrown, it is an error like any other. */
export function inputRequired({ inputRequests = {}, state }: InputRequiredOptions): InputRequired {
  const questions = new Map(Object.entries(inputRequests))
  if (questions.size === 0 && state === undefined) {
    throw questionInvalid('inputRequired', 'it has neither inputRequests nor a state')
  }
  return new InputRequired(questions, state === undefined ? undefined : toJsonText(state, 'the state of inputRequired'))
}

/** A form, to be read with `io.responses.accepted`. */
export function elicit(message: string, schema: Schema): Question {
  return new FormQuestion(checkMessage(message, 'elicit'), prepareForm(schema, `elicit(${JSON.stringify(message)})`))
}

/** Acceptance is consent, not completion: look yourself whether what the user was sent to do has happened. */
export function visit(message: string, url: string): Question {
  return new VisitQuestion(checkMessage(message, 'visit'), checkUrl(url, 'visit'), () => Promise.resolve(true))
}

/** A question to the client's model, to be read with `io.responses.sampled`. */
export function sample(params: CreateMessageRequestParams): Question {
  return new SampleQuestion(params, 'sample')
}

/** A question for the client's roots, to be read with `io.responses.roots`. */
export function roots(): Question {
  return new RootsQuestion()
}

/** The answers of this round, for a handler that takes its rounds by hand. Untrusted until read with a schema. */
export class RoundResponses {
  readonly #input: PassInput

  constructor(input: PassInput) {
    this.#input = input
  }

  /** The accepted content, where it fits the schema; else `undefined`, and the question may be asked again. */
  accepted<S extends Schema>(key: string, schema: S): Output<S> | undefined {
    if (this.action(key) !== 'accept') return undefined
    return fitting(prepareForm(schema, key).check(this.raw(key)?.['content'] ?? {}), key) as Output<S> | undefined
  }

  /** What the user did with a form or a URL; `undefined` when there is no answer. */
  action(key: string): Action | undefined {
    const action = this.raw(key)?.['action']
    return action === 'accept' || action === 'decline' || action === 'cancel' ? action : undefined
  }

  /** What the client's model said; `undefined` when there is no answer, or one that is not well-formed. */
  sampled(key: string): CreateMessageResult | undefined {
    const raw = this.raw(key)
    return raw && (valueOf(readSample(raw, true)) as CreateMessageResult | undefined)
  }

  /** The client's roots; `undefined` when there is no answer, or one that is not well-formed. */
  roots(key: string): Root[] | undefined {
    const raw = this.raw(key)
    return raw && (valueOf(new RootsQuestion().fit(raw)) as Root[] | undefined)
  }

  /** The answer as it came, a JSON object. Only to what was asked, except in the first round. */
  raw(key: string): Record<string, unknown> | undefined {
    const { answers, flowState, flow } = this.#input
    const held = flowState.held.get(key)?.answer
    // It came with a round that was handed over before it could be used up.
    if (held !== undefined && 'raw' in held) return held.raw
    if (answers === undefined || !Object.hasOwn(answers, key)) return undefined
    return flow.round === 0 || flowState.open.has(key) ? answers[key] : undefined
  }

  /** The state that the last round returned. With a schema it is checked, and `undefined` when it does not fit. */
  state(): unknown
  state<S extends Schema>(schema: S): Output<S> | undefined
  state(schema?: Schema): unknown {
    const state = this.#input.flowState.byHand?.state
    if (schema === undefined || state === undefined) return state
    return fitting(toCheck(schema, 'io.responses.state')(state), 'state')
  }
}

/** What a returned `InputRequired` makes of a pass. */
export function byHandOutcome({ questions, stateText }: InputRequired, pass: Pass): Outcome {
  const { journal, can, limits } = pass.input
  if (pass.hasAsked) throw mixedStyles()
  const stateBytes = Buffer.byteLength(stateText ?? '')
  if (journal.bytes + stateBytes > limits.journalBytes) {
    const largest = [`the state of inputRequired (${stateBytes} bytes)`, ...journal.largest(2)]
    throw tooLarge(journal.bytes + stateBytes, limits.journalBytes, largest)
  }
  const byHand = stateText === undefined ? {} : { state: JSON.parse(stateText) as unknown }
  const flowState: FlowState = { open: new Map(), held: new Map(), byHand }
  const texts = new Map<string, string>()
  for (const [key, question] of questions) {
    if (!isKey(key)) throw keyInvalid(key)
    if (typeof question?.text !== 'function') throw questionInvalid(key, 'make it with elicit, visit, sample or roots')
    const missing = missingCapabilities(question.needs, can)
    if (missing !== undefined) throw new MissingCapability(key, missing)
    texts.set(key, question.text())
    flowState.open.set(key, { pin: pinOf(question), asked: 1 })
  }
  return texts.size > 0
    ? { kind: 'asks', questions: texts, journal, flowState }
    : { kind: 'deferred', journal, flowState }
}

function fitting(checked: Checked<unknown> | Promise<Checked<unknown>>, key: string): unknown {
  if (!(checked instanceof Promise)) return 'value' in checked ? checked.value : undefined
  // Nobody waits for it, so it must not end the process either.
  checked.catch(() => {})
  throw questionInvalid(key, 'by hand, only a synchronous schema can be read')
}

function valueOf(fit: Fit): unknown {
  return 'action' in fit ? fit.value : undefined
}
