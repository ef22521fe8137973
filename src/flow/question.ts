// Questions to the client: the wire text of each kind, the pin taken from it, and whether an answer fits.
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

/** `pending`: accepted, but what was agreed to has not happened yet. */
export type Fit = { action: Action; value?: unknown } | { misfit: string } | { pending: string }

export interface Question {
  /** The exact wire text of the author's question. With a note, the same question that says why it is asked again. */
  text(note?: string): string
  /** What the client must have declared to be asked this. */
  readonly needs: readonly Capability[]
  /** Reads an untrusted answer, a JSON object, once. */
  fit(answer: Record<string, unknown>): Fit | Promise<Fit>
}

export type Capability =
  | 'elicitation.form'
  | 'elicitation.url'
  | 'sampling'
  | 'sampling.tools'
  | 'sampling.context'
  | 'roots'
  | 'tasks'

/** A schema made ready to be asked: converted to the wire's form, its text kept. */
export interface Form {
  readonly text: string
  readonly check: Check
}

/** The digest of a question's wire text: an answer belongs to the question that the client was shown. */
export function pinOf(question: Question): string {
  return hash('sha256', question.text(), 'base64url').slice(0, 22)
}

export function prepareForm(schema: Schema, where: string): Form {
  const form = toForm(jsonSchemaOf(schema, 'input', where), where)
  const text = JSON.stringify(form)
  if (isStandard(schema)) return { text, check: toCheck(schema, where) }
  // What the form cannot say of a plain JSON Schema holds all the same; most say nothing else.
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

export interface VisitOptions {
  /** Whether what the user was sent to do has happened. Acceptance is consent to go there, not completion. */
  done: (visit: { token: string; signal: AbortSignal }) => boolean | Promise<boolean>
  /** How long each round waits for `done` before it asks again. Default 10 seconds. */
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

/** The part of what a question needs that is not there, in the wire's shape; `undefined` when nothing is missing. */
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

/** Every elicitation tells the user why. */
export function checkMessage(message: unknown, key: string): string {
  if (typeof message !== 'string' || message === '') throw questionInvalid(key, 'its message must be a text')
  return message
}

/** The client sees the whole address, and so must be able to show it and has no business with a password in it. */
export function checkUrl(address: unknown, key: string): string {
  if (typeof address !== 'string' || !hasFormat('uri', address) || !/^https?:/i.test(address)) {
    throw questionInvalid(key, 'its url must be an http or https address')
  }
  const { username, password } = new URL(address)
  if (username + password !== '') throw questionInvalid(key, 'its url must not hold a name or a password')
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

/** The pinned text is the author's own; the note is only shown. */
function noted(message: string, note: string | undefined): string {
  return JSON.stringify(note === undefined ? message : `${message}\n\n${note}`)
}
