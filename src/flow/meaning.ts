// What a journal entry says to the handler that comes to its call again.
import type { Call, CallKind } from './call.ts'
import type { Failure } from './errors.ts'
import { Declined, StepFailed } from './errors.ts'
import type { AnswerPayload, Entry, Tag } from './journal.ts'

/** What an entry's payload is to the caller; throws what the caller is to catch. */
export function meaning({ key, asking }: Call, tag: Tag, payload: unknown): unknown {
  switch (tag) {
    case 'a': {
      const [, , action, value] = payload as AnswerPayload
      return asking?.give(action, value)
    }
    case 's':
    case 'c':
      return payload
    case 'sv':
    case 'cv':
      return undefined
    case 'se':
    case 'ce': {
      const failure = payload as { declined: string; action: 'decline' | 'cancel' } | Failure
      throw 'declined' in failure ? new Declined(failure.declined, failure.action) : new StepFailed(key, failure)
    }
  }
}

export function kindOf({ tag }: Entry): CallKind {
  return tag === 'a' ? 'ask' : tag.startsWith('s') ? 'step' : 'scope'
}
