// Rounds by hand: the handler reads the answers of a round itself, and returns what the next round asks.
//
// The handler decides what it asks, how often, and whether an answer belongs to its question. It may use steps and scopes, which
// are recorded as usual, but it must not ask through io: a call takes all of its rounds by hand, or none.
import { toCheck } from '../schema/validator.ts'
import { isObject, toJsonText } from '../protocol/json.ts'
import type { CreateMessageRequestParams, CreateMessageResult, InputRequest, Root } from '../protocol/messages.ts'
import { quoted, shown } from '../protocol/text.ts'
import type { Checked, Output, Schema } from '../schema/standard.ts'
import type { Answers } from './answering.ts'
import { isKey } from './call.ts'
import type { FlowState } from './flow-state.ts'
import {
  keyInvalid,
  MissingCapability,
  mixedStyles,
  needsByHand,
  questionInvalid,
  resultInvalid,
  tooLarge,
} from './errors.ts'
import { nameOf } from './failure-log.ts'
import type { Action } from './journal.ts'
import type { Outcome } from './carrier.ts'
import type { PassInput } from './carrier.ts'
import type { FlowObserver } from './observer.ts'
import type { ReturnedPass } from './phase.ts'
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

/** The return value of a handler that needs another round. Create it with `inputRequired`. */
export class InputRequired {
  /** The questions to ask, by key. */
  readonly questions: ReadonlyMap<string, Question>
  /** JSON text, so that later changes to the handler's object do not change it. */
  readonly stateText: string | undefined

  constructor(questions: ReadonlyMap<string, Question>, stateText: string | undefined) {
    this.questions = questions
    this.stateText = stateText
  }
}

/** What a handler that takes its rounds by hand asks for, and the state it gets back. */
export interface InputRequiredOptions {
  /** The questions, by key: made with `elicit`, `visit`, `sample` or `roots`, or as the protocol writes them. Without any, the client sends the call again with the state. Default: none. */
  inputRequests?: Readonly<Record<string, Question | InputRequest>>
  /** A JSON value that the next round reads with `io.responses.state()`. Sealed, and bound to the caller, the request and the time. Default: none. */
  state?: unknown
}

/**
 * Ends this round and asks for another one. Return it from the handler, or throw it from a function that the handler calls.
 *
 * @example
 * return inputRequired({ inputRequests: { name: elicit('Your name?', Name) }, state: { step: 1 } })
 */
export function inputRequired({ inputRequests = {}, state }: InputRequiredOptions): InputRequired {
  const questions = new Map(Object.entries(inputRequests).map(([key, request]) => [key, toQuestion(key, request)]))
  if (questions.size === 0 && state === undefined) {
    throw questionInvalid('inputRequired', 'it has neither inputRequests nor a state')
  }
  return new InputRequired(questions, state === undefined ? undefined : toJsonText(state, 'the state of inputRequired'))
}

/** True for `inputRequired(...)`, and for a result as the protocol writes it. */
export function isInputRequired(value: unknown): boolean {
  return value instanceof InputRequired || (isObject(value) && value['resultType'] === 'input_required')
}

/** What a handler returned or threw, if it asks for another round: `inputRequired(...)`, or a result as the protocol writes it. */
export function asInputRequired(value: unknown): InputRequired | undefined {
  if (value instanceof InputRequired) return value
  if (!isObject(value)) return undefined
  const { resultType, inputRequests, requestState } = value
  if (resultType !== 'input_required') return checkComplete(value)
  if (inputRequests !== undefined && !isObject(inputRequests)) {
    throw resultInvalid(
      `its \`inputRequests\` must be an object with a question for each key, got ${shown(inputRequests)}`,
    )
  }
  return inputRequired({
    ...(inputRequests !== undefined && { inputRequests: inputRequests as Record<string, InputRequest> }),
    // The client gets it sealed, and the next round reads it with `io.responses.state()`.
    ...(requestState !== undefined && { state: requestState }),
  })
}

/** Throws if a result says that it is not complete: what it says would be lost. */
function checkComplete(value: Record<string, unknown>): undefined {
  const { resultType, inputRequests } = value
  if (resultType === undefined) {
    if (isObject(inputRequests)) throw resultInvalid("it has `inputRequests` and no `resultType: 'input_required'`")
  } else if (resultType !== 'complete' && (OTHER_RESULTS.has(resultType) || isResult(value))) {
    throw resultInvalid(`its \`resultType\` must be 'complete' or 'input_required', got ${shown(resultType)}`)
  }
}

/** What only Rally makes, and the name of `input_required` in a draft. */
const OTHER_RESULTS: ReadonlySet<unknown> = new Set(['task', 'incomplete'])

/** True if it has the members of a result. Data of the author's own may have a `resultType` too. */
function isResult({ inputRequests, requestState, content }: Record<string, unknown>): boolean {
  if (inputRequests !== undefined || requestState !== undefined) return true
  return Array.isArray(content) && content.every((block) => isObject(block) && typeof block['type'] === 'string')
}

/** A form for the user. Read its answer with `io.responses.accepted`. */
export function elicit(message: string, schema: Schema): Question {
  return new FormQuestion(checkMessage(message, 'elicit'), prepareForm(schema, `elicit(${JSON.stringify(message)})`))
}

/** A web page for the user to visit. Accepting only means that the user agrees to open it: check yourself whether the visit is completed. */
export function visit(message: string, url: string): Question {
  return new VisitQuestion(checkMessage(message, 'visit'), checkUrl(url, 'visit'), () => Promise.resolve(true))
}

/** A question to the client's model. Read its answer with `io.responses.sampled`. */
export function sample(params: CreateMessageRequestParams): Question {
  return new SampleQuestion(params, 'sample')
}

/** A question for the client's roots. Read its answer with `io.responses.roots`. */
export function roots(): Question {
  return new RootsQuestion()
}

/** The answers of this round, for a handler that takes its rounds by hand. Untrusted, except if read with a schema. */
export class RoundResponses {
  readonly #input: PassInput

  constructor(input: PassInput) {
    this.#input = input
  }

  /** The accepted content if it matches the schema, or else `undefined`. */
  accepted<S extends Schema>(key: string, schema: S): Output<S> | undefined {
    if (this.action(key) !== 'accept') return undefined
    return fitting(prepareForm(schema, key).check(this.raw(key)?.['content'] ?? {}), key) as Output<S> | undefined
  }

  /** What the user did with a form or a visit; `undefined` if there is no answer. */
  action(key: string): Action | undefined {
    return actionOf(this.raw(key))
  }

  /** The message of the client's model; `undefined` if there is no valid answer. */
  sampled(key: string): CreateMessageResult | undefined {
    const raw = this.raw(key)
    return raw && (valueOf(readSample(raw, true)) as CreateMessageResult | undefined)
  }

  /** The client's roots; `undefined` if there is no valid answer. */
  roots(key: string): Root[] | undefined {
    const raw = this.raw(key)
    return raw && (valueOf(new RootsQuestion().fit(raw)) as Root[] | undefined)
  }

  /** The answer as the client sent it, a JSON object. Only to questions that were asked, except in the first round. */
  raw(key: string): Record<string, unknown> | undefined {
    const { answers, flowState, flow, observed } = this.#input
    const held = flowState.held.get(key)?.answer
    // It came with a round that was handed over before the handler finished.
    if (held !== undefined && 'raw' in held) return held.raw
    if (answers === undefined || !Object.hasOwn(answers, key)) return undefined
    const answer = flow.round === 0 || flowState.open.has(key) ? answers[key] : undefined
    // It came with the call itself, before the flow was known to be one by hand.
    if (observed !== undefined && answer !== undefined) observeAnswer(observed, key, answer)
    return answer
  }

  /** The state that the last round returned. With a schema, `undefined` if the state does not match it. */
  state(): unknown
  state<S extends Schema>(schema: S): Output<S> | undefined
  state(schema?: Schema): unknown {
    const state = this.#input.flowState.byHand?.state
    if (schema === undefined || state === undefined) return state
    return fitting(toCheck(schema, 'io.responses.state')(state), 'state')
  }
}

/** Tells the observers of a pass what the client answered to the round by hand before it. An instance of another version may have held it. */
export function observeAnswers(
  { byHand, open, held }: FlowState,
  answers: Answers | undefined,
  observed: FlowObserver,
): void {
  if (byHand === undefined) return
  for (const [key, { answer }] of held) if ('raw' in answer) observeAnswer(observed, key, answer.raw)
  for (const [key, answer] of Object.entries(answers ?? {})) if (open.has(key)) observeAnswer(observed, key, answer)
}

function observeAnswer(observed: FlowObserver, key: string, answer: Answers[string]): void {
  observed.answeredByHand(key, actionOf(answer) ?? 'accept')
}

/** `undefined` for the answers of a model and of roots, which have no action. */
function actionOf(answer: Answers[string] | undefined): Action | undefined {
  const action = answer?.['action']
  return action === 'accept' || action === 'decline' || action === 'cancel' ? action : undefined
}

/** The outcome of a pass whose handler returned `inputRequired`. */
export function byHandOutcome({ questions, stateText }: InputRequired, pass: ReturnedPass): Outcome {
  const { journal, can, limits, observed } = pass.input
  if (pass.hasNeeds) throw needsByHand(nameOf(pass.input.target))
  if (pass.hasAsked) throw mixedStyles()
  const stateBytes = Buffer.byteLength(stateText ?? '')
  if (journal.bytes + stateBytes > limits.journalBytes) {
    const largest = [`the state of inputRequired (${stateBytes} bytes)`, ...journal.largest(2)]
    throw tooLarge(journal.bytes + stateBytes, limits.journalBytes, largest)
  }
  const byHand = stateText === undefined ? {} : { state: JSON.parse(stateText) as unknown }
  const { client, trace } = pass.input.flowState
  const kept = { ...(client && { client }), ...(trace !== undefined && { trace }) }
  const flowState: FlowState = { open: new Map(), held: new Map(), byHand, ...kept }
  const texts = new Map<string, string>()
  for (const [key, question] of questions) {
    if (!isKey(key)) throw keyInvalid(key)
    if (typeof question?.text !== 'function')
      throw questionInvalid(key, 'it must be created with elicit, visit, sample or roots')
    const missing = missingCapabilities(question.needs, can)
    if (missing !== undefined) throw new MissingCapability(key, missing)
    texts.set(key, question.text())
    observed?.ask(key, question.needs[0] ?? '')
    flowState.open.set(key, { pin: pinOf(question), asked: 1 })
  }
  return texts.size > 0
    ? { kind: 'asks', questions: texts, journal, flowState }
    : { kind: 'deferred', journal, flowState }
}

/** Reads a question as the protocol writes it. One that was made with `elicit` and the like stays as it is. */
function toQuestion(key: string, request: Question | InputRequest): Question {
  if (!isObject(request) || typeof request['method'] !== 'string') return request as Question
  const { method, params } = request as { method: string; params?: unknown }
  const { mode = 'form', message, requestedSchema, url } = isObject(params) ? params : {}
  switch (method) {
    case 'elicitation/create':
      if (mode === 'url') {
        return new VisitQuestion(checkMessage(message, key), checkUrl(url, key), () => Promise.resolve(true))
      }
      if (!isObject(requestedSchema)) throw questionInvalid(key, 'its params need a `requestedSchema`')
      return new FormQuestion(checkMessage(message, key), prepareForm(requestedSchema, key))
    case 'sampling/createMessage':
      return new SampleQuestion(params as CreateMessageRequestParams, key)
    case 'roots/list':
      return new RootsQuestion()
    default:
      throw questionInvalid(
        key,
        `its method must be elicitation/create, sampling/createMessage or roots/list, got ${quoted(method)}`,
      )
  }
}

function fitting(checked: Checked<unknown> | Promise<Checked<unknown>>, key: string): unknown {
  if (!(checked instanceof Promise)) return 'value' in checked ? checked.value : undefined
  // Nothing awaits it, so its rejection must not end the process.
  checked.catch(() => {})
  throw questionInvalid(key, 'by hand, the schema must validate synchronously')
}

function valueOf(fit: Fit): unknown {
  return 'action' in fit ? fit.value : undefined
}
