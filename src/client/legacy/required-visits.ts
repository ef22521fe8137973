// Calls that a server of 2025-11-25 refuses until its user has been to some pages: sends the user there, and says whether a
// call may be made again.
import { ProtocolError, URL_ELICITATION_REQUIRED } from '../../protocol/errors.ts'
import { isObject } from '../../protocol/json.ts'
import type { InputRequests } from '../../protocol/messages.ts'
import type { ServerQuestion } from '../answers/question.ts'
import { readQuestions } from '../answers/question.ts'

export interface VisitActions {
  /** The answers to these questions, as JSON text by their keys. */
  readonly ask: (pages: readonly ServerQuestion[]) => Promise<string>
  /** Waits so long, or until the server says that one of these pages is done with. */
  readonly pause: (ms: number, pages: ReadonlySet<string>) => Promise<void>
}

/** In one call, the user is asked so many times. */
const MOST_ASKED = 3
/** To have agreed is not to have finished: the next pause is twice as long. */
const FIRST_PAUSE_MS = 1_000
const MOST_PAUSES = 5

export class RequiredVisits {
  readonly #sending: VisitActions
  /** Pages that the user has agreed to visit. */
  readonly #agreed = new Set<string>()
  #asked = 0
  #pauses = 0

  constructor(sending: VisitActions) {
    this.#sending = sending
  }

  /** Whether the call that has come to this may be made again. */
  async allow(error: unknown): Promise<boolean> {
    const pages = readPages(error)
    const others = pages.filter(({ key }) => !this.#agreed.has(key))
    if (others.length > 0) return this.#ask(others)
    return pages.length > 0 && this.#wait()
  }

  async #ask(pages: readonly ServerQuestion[]): Promise<boolean> {
    if (this.#asked === MOST_ASKED) return false
    this.#asked += 1
    const answers = JSON.parse(await this.#sending.ask(pages)) as Record<string, { action: string }>
    for (const [key, { action }] of Object.entries(answers)) if (action === 'accept') this.#agreed.add(key)
    return pages.every(({ key }) => this.#agreed.has(key))
  }

  async #wait(): Promise<boolean> {
    if (this.#pauses === MOST_PAUSES) return false
    await this.#sending.pause(FIRST_PAUSE_MS * 2 ** this.#pauses, this.#agreed)
    this.#pauses += 1
    return true
  }
}

/** Without any that a user could be sent to, it is an error like others. */
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
