// The error by which a server of 2025-11-25 refuses a call until its user has been to some pages.
import { ProtocolError, URL_ELICITATION_REQUIRED } from '../../protocol/errors.ts'
import { isObject } from '../../protocol/json.ts'
import type { InputRequests } from '../../protocol/messages.ts'
import type { Question } from '../question.ts'
import { readQuestions } from '../question.ts'

/** The pages. Without any that a user could be sent to, it is an error like others. */
export function requiredVisits(error: unknown): Question[] {
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
