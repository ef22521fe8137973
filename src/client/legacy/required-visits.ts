// A server of 2025-11-25 may refuse a call until its user has visited some pages. Sends the user there, and decides whether
// the call may be sent again.
import { backoff } from '../../protocol/backoff.ts'
import { ProtocolError, URL_ELICITATION_REQUIRED } from '../../protocol/errors.ts'
import { isObject } from '../../protocol/json.ts'
import type { InputRequests } from '../../protocol/messages.ts'
import type { CheckedAnswers } from '../answers/answering.ts'
import type { ServerQuestion } from '../answers/question.ts'
import { readQuestions } from '../answers/question.ts'

export interface VisitActions {
  /** Gets the questions answered. */
  readonly ask: (pages: readonly ServerQuestion[]) => Promise<CheckedAnswers>
  /** Waits `ms`, or until the server reports that one of these pages is done. */
  readonly pause: (ms: number, pages: ReadonlySet<string>) => Promise<void>
}

/** How often the user is asked during one call. */
const MAX_ASKED = 3
/** A user who has agreed still needs time to finish on the page. */
const PAUSE = { firstMs: 1_000 }
const MAX_PAUSES = 5

export class RequiredVisits {
  readonly #actions: VisitActions
  /** Pages that the user has agreed to visit. */
  readonly #agreed = new Set<string>()
  #asked = 0
  #pauses = 0

  constructor(actions: VisitActions) {
    this.#actions = actions
  }

  /** Returns true if the call that failed with this error may be sent again. */
  async allow(error: unknown): Promise<boolean> {
    const pages = readPages(error)
    const others = pages.filter(({ key }) => !this.#agreed.has(key))
    if (others.length > 0) return this.#ask(others)
    return pages.length > 0 && this.#wait()
  }

  async #ask(pages: readonly ServerQuestion[]): Promise<boolean> {
    if (this.#asked === MAX_ASKED) return false
    this.#asked += 1
    const answers = await this.#actions.ask(pages)
    for (const [key, { action }] of Object.entries(answers)) if (action === 'accept') this.#agreed.add(key)
    return pages.every(({ key }) => this.#agreed.has(key))
  }

  async #wait(): Promise<boolean> {
    if (this.#pauses === MAX_PAUSES) return false
    this.#pauses += 1
    await this.#actions.pause(backoff(this.#pauses, PAUSE), this.#agreed)
    return true
  }
}

/** Returns no pages if the error does not ask for any. */
function readPages(error: unknown): ServerQuestion[] {
  if (!(error instanceof ProtocolError) || error.rpcCode !== URL_ELICITATION_REQUIRED) return []
  const pages: unknown = isObject(error.data) ? error.data['elicitations'] : undefined
  if (!Array.isArray(pages) || !pages.every(isPage)) return []
  const requests = pages.map((params) => [params.elicitationId, { method: 'elicitation/create', params }] as const)
  return readQuestions(Object.fromEntries(requests) as unknown as InputRequests)
}

interface Page {
  readonly mode: 'url'
  readonly elicitationId: string
}

function isPage(page: unknown): page is Page {
  return isObject(page) && page['mode'] === 'url' && typeof page['elicitationId'] === 'string'
}
