// Reads a pending round that comes back: from a file, another process, another day.
import { isObject, isTame } from '../protocol/json.ts'
import { ClientError } from './errors.ts'
import { shown } from '../protocol/text.ts'
import type { PendingCall } from './pending.ts'
import { MAX_DEPTH } from './pending.ts'
import { RESUMABLE_REVISIONS } from './revision.ts'

/** Checks what may have been damaged on its way; throws `PENDING_INVALID`. */
export function readPending(given: unknown): PendingCall {
  if (!isObject(given)) throw invalid('it is no object; give what JSON.parse makes of its text')
  const { version, revision, method, params, inputRequests, requestState } = given
  if (version !== 1) throw invalid(`its version is ${shown(version)}, and this client reads 1`)
  if (!RESUMABLE_REVISIONS.includes(revision as string)) {
    throw invalid(`its revision is ${shown(revision)}, and this client speaks ${RESUMABLE_REVISIONS.join(', ')}`)
  }
  if (!isObject(params)) throw invalid('its params are no object')
  checkTarget(method, params)
  if (requestState !== undefined && typeof requestState !== 'string') throw invalid('its requestState is no text')
  if (inputRequests !== undefined && !isObject(inputRequests)) throw invalid('its inputRequests are no object')
  if (requestState === undefined && inputRequests === undefined) {
    throw invalid('it has neither inputRequests nor a requestState')
  }
  if (!isTame(given, MAX_DEPTH)) throw invalid('it is nested too deeply, or holds a number that is none')
  return given as unknown as PendingCall
}

function checkTarget(method: unknown, params: Record<string, unknown>): void {
  const { name, uri, arguments: args = {} } = params
  switch (method) {
    case 'tools/call':
    case 'prompts/get':
      if (typeof name !== 'string') throw invalid('its params have no name')
      if (!isObject(args)) throw invalid('its arguments are no object')
      return
    case 'resources/read':
      if (typeof uri !== 'string') throw invalid('its params have no uri')
      return
    default:
      throw invalid('its method is none that takes several rounds')
  }
}

function invalid(why: string): ClientError {
  return new ClientError('PENDING_INVALID', `The pending round cannot be taken up: ${why}.`)
}
