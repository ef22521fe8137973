// Questions to the client: the wire text of each kind, its pin, and the check of an answer.
import { hash } from 'node:crypto'
import type { Check } from '../schema/validator.ts'
import { toCheck } from '../schema/validator.ts'
import { toForm } from '../schema/form.ts'
import { checkForm, pickForm } from '../schema/form-answer.ts'
import { hasFormat } from '../schema/formats.ts'
import type { ClientCapabilities } from '../protocol/messages.ts'
import type { Checked, Schema } from '../schema/standard.ts'
import { isStandard, jsonSchemaOf } from '../schema/standard.ts'
import { questionInvalid } from './errors.ts'
import type { Action } from './journal.ts'
import { isObject } from '../protocol/json.ts'

/** The result of checking an answer. `pending`: the user accepted a visit and has not completed it yet. */
export type Fit = { action: Action; value?: unknown } | { misfit: string } | { pending: string }

export interface Question {
  /** The wire text of the author's question. With a note, the message also says why the question is asked again. */
  text(note?: string): string
  /** The capabilities that the client must declare to be asked this. */
  readonly needs: readonly Capability[]
  /** True if it is no question to the client: the answer comes from outside, as `{ value }`. Default false. */
  readonly isEvent?: boolean
  /** Checks an untrusted answer, which is a JSON object. */
  fit(answer: Record<string, unknown>): Fit | Promise<Fit>
}

/** What a client must be able to do for a question, as the protocol names it. */
export type Capability =
  | 'elicitation.form'
  | 'elicitation.url'
  | 'sampling'
  | 'sampling.tools'
  | 'sampling.context'
  | 'roots'
  | 'tasks'

/** A schema that is ready to be asked: converted to a wire form, with the check of its answers. */
export interface Form {
  readonly text: string
  readonly check: Check
}

/** The digest of a question's wire text. An answer is valid only for the question that the client was shown. */
export function pinOf(question: Question): string {
  return hash('sha256', question.text(), 'base64url').slice(0, 22)
}

export function prepareForm(schema: Schema, where: string): Form {
  const form = toForm(jsonSchemaOf(schema, 'input', where), where)
  const text = JSON.stringify(form)
  if (isStandard(schema)) return { text, check: toCheck(schema, where) }
  // A JSON Schema may say more than a form can: check that too. Most schemas do not.
  const refine = text === JSON.stringify(schema) ? undefined : toCheck(schema, where)
  return {
    text,
    check: (content) => {
      const issues = checkForm(form, content)
      if (issues.length > 0) return { issues }
      const value = pickForm(form, content)
      return refine === undefined ? { value } : refine(value)
    },
  }
}

export class FormQuestion implements Question {
  readonly needs = FORM_NEEDS
  readonly #message: string
  readonly #form: Form
  #text: string | undefined

  constructor(message: string, form: Form) {
    this.#message = message
    this.#form = form
  }

  text(note?: string): string {
    return note === undefined ? (this.#text ??= this.#textWith(undefined)) : this.#textWith(note)
  }

  #textWith(note: string | undefined): string {
    return `{"method":"elicitation/create","params":{"mode":"form","message":${noted(this.#message, note)},"requestedSchema":${this.#form.text}}}`
  }

  fit(answer: Record<string, unknown>): Fit | Promise<Fit> {
    const action = actionOf(answer)
    if (action !== 'accept') return action === undefined ? NO_ACTION : { action }
    const checked = this.#form.check(answer['content'] ?? {})
    return checked instanceof Promise ? checked.then(toFit) : toFit(checked)
  }
}

/** Options of `io.visit()`. */
export interface VisitOptions {
  /** Returns true once the user has completed the visit. Accepting only means that the user agrees to open the page. */
  done: (visit: { token: string; signal: AbortSignal }) => boolean | Promise<boolean>
  /** How long each round waits for `done` before it asks again, in milliseconds. Default 10 000. */
  waitMs?: number
}

export class VisitQuestion implements Question {
  readonly needs = URL_NEEDS
  readonly #message: string
  readonly #url: string
  readonly #completed: () => Promise<boolean>

  constructor(message: string, url: string, completed: () => Promise<boolean>) {
    this.#message = message
    this.#url = url
    this.#completed = completed
  }

  text(note?: string): string {
    return `{"method":"elicitation/create","params":{"mode":"url","message":${noted(this.#message, note)},"url":${JSON.stringify(this.#url)}}}`
  }

  fit(answer: Record<string, unknown>): Fit | Promise<Fit> {
    const action = actionOf(answer)
    if (action !== 'accept') return action === undefined ? NO_ACTION : { action }
    return this.#completed().then((done) =>
      done ? { action } : { pending: 'This has not been completed yet. Finish it at the address, then accept again.' },
    )
  }
}

export class RootsQuestion implements Question {
  readonly needs = ROOTS_NEEDS

  text(): string {
    return '{"method":"roots/list"}'
  }

  fit(answer: Record<string, unknown>): Fit {
    const { roots } = answer
    const fits =
      Array.isArray(roots) && roots.every((root: unknown) => isObject(root) && typeof root['uri'] === 'string')
    return fits ? { action: 'accept', value: roots } : { misfit: 'roots must be a list of objects with a uri' }
  }
}

/** The capabilities that are missing, in the shape of the wire; `undefined` if none is. */
export function missingCapabilities(
  needs: readonly Capability[],
  can: (capability: Capability) => boolean,
): ClientCapabilities | undefined {
  if (needs.every(can)) return undefined
  const missing = needs.filter((capability) => !can(capability))
  const required: Record<string, Record<string, object>> = {}
  for (const capability of missing) {
    const [area = '', detail] = capability.split('.')
    required[area] = { ...required[area], ...(detail && { [detail]: {} }) }
  }
  return required
}

/** Every elicitation has a message for the user. */
export function checkMessage(message: unknown, key: string): string {
  if (typeof message !== 'string' || message === '')
    throw questionInvalid(key, 'its message must be a non-empty string')
  return message
}

/** The client shows the whole URL to the user, so it must be a web address without credentials. */
export function checkUrl(address: unknown, key: string): string {
  if (typeof address !== 'string' || !hasFormat('uri', address) || !/^https?:/i.test(address)) {
    throw questionInvalid(key, 'its url must be an http or https URL')
  }
  const { username, password } = new URL(address)
  if (username + password !== '') throw questionInvalid(key, 'its url must not contain a user name or a password')
  return address
}

const FORM_NEEDS: readonly Capability[] = ['elicitation.form']
const URL_NEEDS: readonly Capability[] = ['elicitation.url']
const ROOTS_NEEDS: readonly Capability[] = ['roots']
const NO_ACTION: Fit = { misfit: 'action must be "accept", "decline" or "cancel"' }

function actionOf({ action }: Record<string, unknown>): Action | undefined {
  return action === 'accept' || action === 'decline' || action === 'cancel' ? action : undefined
}

function toFit(checked: Checked<unknown>): Fit {
  return 'issues' in checked ? { misfit: checked.issues.join('; ') } : { action: 'accept', value: checked.value }
}

/** The note is shown to the user, and is not part of the pin. */
function noted(message: string, note: string | undefined): string {
  return JSON.stringify(note === undefined ? message : `${message}\n\n${note}`)
}
