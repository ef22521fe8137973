// The questions of a round, read from an untrusted server into something that can be shown and answered.
import type { CreateMessageRequestParams, FormSchema, InputRequests } from '../../protocol/messages.ts'
import { toForm } from '../../schema/form.ts'
import { ClientError } from '../errors.ts'
import { reasonOf, shown } from '../../protocol/text.ts'
import { isObject, withinSize } from '../../protocol/json.ts'
import { readVisitAddress } from './address.ts'

export type ServerQuestion = FormQuestion | VisitQuestion | SampleQuestion | RootsQuestion

/** A form for the user to fill in. */
export interface FormQuestion {
  readonly kind: 'form'
  readonly key: string
  readonly message: string
  /** One level of texts, numbers, switches and choices, whatever the server wrote. */
  readonly form: FormSchema
}

/** A page for the user to visit. Consent is all that is asked for: what happens there stays between user and server. */
export interface VisitQuestion {
  readonly kind: 'visit'
  readonly key: string
  readonly message: string
  /** The whole address, http or https. Show all of it, and never fetch it. */
  readonly url: string
  /** Its host, in ASCII, with the port where there is one. */
  readonly host: string
  /** Whether the host is written with letters beyond ASCII (punycode), and so may only look like one that the user knows. */
  readonly lookalike: boolean
}

/** A prompt for the client's model. */
export interface SampleQuestion extends CreateMessageRequestParams {
  readonly kind: 'sample'
  readonly key: string
}

/** The folders that the server may know of. */
export interface RootsQuestion {
  readonly kind: 'roots'
  readonly key: string
}

const MOST_QUESTIONS = 100

/** Properties and items of a form's schema, at any depth. */
const LARGEST_FORM = 5_000

export function readQuestions(requests: InputRequests): ServerQuestion[] {
  const entries = Object.entries(requests)
  if (entries.length > MOST_QUESTIONS) {
    throw new ClientError(
      'QUESTION_INVALID',
      `The server asks ${entries.length} questions in one round; this client takes ${MOST_QUESTIONS}.`,
    )
  }
  return entries.map(([key, request]) => readQuestion(key, request))
}

export function readQuestion(key: string, request: unknown): ServerQuestion {
  if (!isObject(request)) throw invalid(key, 'it is no object')
  const { method, params = {} } = request
  if (!isObject(params)) throw invalid(key, 'its params are no object')
  switch (method) {
    case 'elicitation/create':
      return readElicitation(key, params)
    case 'sampling/createMessage':
      return readSample(key, params)
    case 'roots/list':
      return { kind: 'roots', key }
    default:
      throw invalid(key, `its method ${shown(method)} is unknown`)
  }
}

function readElicitation(key: string, params: Record<string, unknown>): ServerQuestion {
  const { mode = 'form', message, requestedSchema, url } = params
  if (typeof message !== 'string') throw invalid(key, 'it has no message')
  if (mode === 'url') return { kind: 'visit', key, message, ...readVisitAddress(url, (why) => invalid(key, why)) }
  if (mode !== 'form') throw invalid(key, `its mode ${shown(mode)} is unknown`)
  if (!isObject(requestedSchema)) throw invalid(key, 'it has no requestedSchema')
  if (!withinSize(requestedSchema, LARGEST_FORM)) throw invalid(key, 'its form is too large')
  try {
    return { kind: 'form', key, message, form: toForm(requestedSchema, 'requestedSchema') }
  } catch (cause) {
    throw invalid(key, reasonOf(cause), cause)
  }
}

function readSample(key: string, params: Record<string, unknown>): SampleQuestion {
  const { messages, maxTokens } = params
  const areMessages = Array.isArray(messages) && messages.every((message) => isObject(message) && 'content' in message)
  if (!areMessages) throw invalid(key, 'it has no messages')
  if (!Number.isSafeInteger(maxTokens)) throw invalid(key, 'its maxTokens is no whole number')
  return { ...(params as unknown as CreateMessageRequestParams), kind: 'sample', key }
}

function invalid(key: string, why: string, cause?: unknown): ClientError {
  const message = `The server's question ${shown(key)} cannot be asked: ${why}.`
  return new ClientError('QUESTION_INVALID', message, cause === undefined ? {} : { cause })
}
