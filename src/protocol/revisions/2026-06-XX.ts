// Revision 2026-06-XX: sessions as in 2025-11-25, but the client carries a call. Results are written with both spellings of
// the result type, the first one and the approved one, and are read with either.
import { isObject } from '../json.ts'
import { writeRetry } from './2026-07-28.ts'
import { revision20251125 } from './2025-11-25.ts'
import type { Message, Result, Retry, OptInRevision } from './rounds.ts'
import type { OlderRevision } from './older.ts'

export const revision202606XX: OlderRevision = {
  ...revision20251125,
  name: '2026-06-XX' satisfies OptInRevision,
  rounds: { readRetry, writeRetry, writeResponse, readResponse },
}

function readRetry({ params }: Message): Retry {
  if (!isObject(params)) return {}
  const { inputResponses, requestState } = params
  return { inputResponses, requestState }
}

function writeResponse(result: Result): Message {
  const { resultType } = result
  return { result: { result_type: resultType === 'input_required' ? 'incomplete' : resultType, ...result } }
}

function readResponse(message: Message): Message {
  if (!isObject(message['result'])) return message
  const { result_type: earlier, resultType = earlier, ...result } = message['result']
  const known = resultType === 'incomplete' ? 'input_required' : resultType
  return { ...message, result: known === undefined ? result : { ...result, resultType: known } }
}
