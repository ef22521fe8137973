// Reads the questions of an untrusted server into a form that can be show and answered.
import type { CreateMessageRequestParams, FormSchema, InputRequests } from '../../protocol/messages.ts'
import { toForm } from '../../schema/form.ts'
import { ClientError, sentence } from '../errors.ts'
import { isObject, withinSize } from '../../protocol/json.ts'
import { reasonOf, shown } from '../../protocol/text.ts'
import { fits, isText, MAX_BYTES } from '../server-text.ts'

/** A question of the server: a form, a page to visit, a sample of the model, or the roots. */
export type ServerQuestion = FormQuestion | VisitQuestion | SampleQuestion | RootsQuestion

/** A form for the user to fill in. */
export interface FormQuestion {
  /** Tells the kinds of questions apart. */
  readonly kind: 'form'
  /** The name of the question in its call. */
  readonly key: string
  /** What the server asks. */
  readonly message: string
  /** Flat fields only: strings, numbers, booleans and choices. */
  readonly form: FormSchema
}

/** A page for the user to visit. The answer is only whether the user agrees; the page itself reports to the server. */
export interface VisitQuestion {
  /** Tells the kinds of questions apart. */
  readonly kind: 'visit'
  /** The name of the question in its call. */
  readonly key: string
  /** Why the user should visit the page. */
  readonly message: string
  /** The complete http or https URL. Show all of it, and never fetch it. */
  readonly url: string
  /** The host of the URL in ASCII, with its port if it has one. */
  readonly host: string
  /** True if the host has letters beyond ASCII (punycode), so that it may imitate a host that the user knows. */
  readonly lookalike: boolean
}

/** A prompt for the client's model. */
export interface SampleQuestion extends CreateMessageRequestParams {
  /** Tells the kinds of questions apart. */
  readonly kind: 'sample'
  /** The name of the question in its call. */
  readonly key: string
}

/** A request for the folders that the server may know of. */
export interface RootsQuestion {
  /** Tells the kinds of questions apart. */
  readonly kind: 'roots'
  /** The name of the question in its call. */
  readonly key: string
}

export const MAX_QUESTIONS = 100

/** Properties and items in the schema of a form, at any depth. */
const MAX_FORM_SIZE = 5_000
/** To resolve its references. */
const MAX_FORM_STEPS = 50_000

export function readQuestions(requests: InputRequests): ServerQuestion[] {
  const entries = Object.entries(requests)
  if (entries.length > MAX_QUESTIONS) throw tooManyQuestions(entries.length)
  return entries.map(([key, request]) => readQuestion(key, request))
}

export function readQuestion(key: string, request: unknown): ServerQuestion {
  if (!fits(key, MAX_BYTES.key)) throw invalid(key, `its key must have at most ${MAX_BYTES.key} bytes`)
  if (!isObject(request)) throw invalid(key, 'it must be an object')
  const { method, params = {} } = request
  if (!isObject(params)) throw invalid(key, 'its params must be an object')
  switch (method) {
    case 'elicitation/create':
      return readElicitation(key, params)
    case 'sampling/createMessage':
      return readSample(key, params)
    case 'roots/list':
      return { kind: 'roots', key }
    default:
      throw invalid(key, `its method is unknown, got ${shown(method)}`)
  }
}

function readElicitation(key: string, params: Record<string, unknown>): ServerQuestion {
  const { mode = 'form', message, requestedSchema, url } = params
  if (typeof message !== 'string') throw invalid(key, 'its message must be a string')
  if (mode === 'url') return { kind: 'visit', key, message, ...readUrl(key, url) }
  if (mode !== 'form') throw invalid(key, `its mode must be "form" or "url", got ${shown(mode)}`)
  if (!isObject(requestedSchema)) throw invalid(key, 'its requestedSchema must be an object')
  if (!withinSize(requestedSchema, MAX_FORM_SIZE)) {
    throw invalid(key, `its form has more than ${MAX_FORM_SIZE} properties and items`)
  }
  try {
    return { kind: 'form', key, message, form: toForm(requestedSchema, 'requestedSchema', MAX_FORM_STEPS) }
  } catch (cause) {
    throw invalid(key, reasonOf(cause), cause)
  }
}

function readSample(key: string, params: Record<string, unknown>): SampleQuestion {
  const { messages, maxTokens } = params
  const areMessages = Array.isArray(messages) && messages.every((message) => isObject(message) && 'content' in message)
  if (!areMessages) throw invalid(key, 'its messages must be a list of messages with content')
  if (!Number.isSafeInteger(maxTokens)) throw invalid(key, `its maxTokens must be an integer, got ${shown(maxTokens)}`)
  return { ...(params as unknown as CreateMessageRequestParams), kind: 'sample', key }
}

/** Reads the URL of a page. It is never fetched. */
function readUrl(key: string, url: unknown): Pick<VisitQuestion, 'url' | 'host' | 'lookalike'> {
  if (!isText(url, MAX_BYTES.uri) || !URL.canParse(url)) {
    throw invalid(key, `its url must be a URL of at most ${MAX_BYTES.uri} bytes`)
  }
  const { protocol, username, password, host, hostname } = new URL(url)
  if (protocol !== 'http:' && protocol !== 'https:') {
    throw invalid(key, `its url must begin with http: or https:, got ${shown(protocol)}`)
  }
  // The part before an @ can be made to look like the host.
  if (username !== '' || password !== '') throw invalid(key, 'its url must not contain a user name or password')
  return { url, host, lookalike: hostname.split('.').some((label) => label.startsWith('xn--')) }
}

export function tooManyQuestions(count: number): ClientError {
  return new ClientError(
    'QUESTION_INVALID',
    `The server asks ${count} questions in one round, and the limit is ${MAX_QUESTIONS}.`,
  )
}

function invalid(key: string, why: string, cause?: unknown): ClientError {
  const message = sentence(`The server's question ${shown(key)} is not valid: ${why}`)
  return new ClientError('QUESTION_INVALID', message, cause === undefined ? {} : { cause })
}
