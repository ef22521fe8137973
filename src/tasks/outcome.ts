// How a task ended, for operations. The status on the wire does not tell: a tool that threw is `completed` there.
import type { TaskRecord } from '../store/tasks.ts'

export const TASK_OUTCOMES = ['ok', 'error', 'gave_up', 'cancelled'] as const

/**
 * `error`: the tool threw, or returned `isError`, or a rule of the flow was broken. `gave_up`: no worker could run it: too many were
 * lost, or the store failed too often, or none had the tool.
 */
export type TaskOutcome = (typeof TASK_OUTCOMES)[number]

/** `undefined` for a task that has not ended. */
export function outcomeOf({ status, state, outcome, message }: TaskRecord): TaskOutcome | undefined {
  switch (status) {
    case 'working':
    case 'input_required':
      return undefined
    case 'cancelled':
      return 'cancelled'
    default: {
      const { ended } = JSON.parse(state) as { ended?: TaskOutcome }
      if (ended === 'ok' || ended === 'error' || ended === 'gave_up') return ended
      // An earlier version ended it.
      if (status === 'completed') return isErrorText(outcome) ? 'error' : 'ok'
      return /^The task failed(?: after \d+ retries\.|: \d+ workers were lost)/.test(message ?? '')
        ? 'gave_up'
        : 'error'
    }
  }
}

/** True for the text of a result with `isError`. */
export function isErrorText(resultText: string | undefined): boolean {
  if (resultText === undefined || !resultText.includes('"isError"')) return false
  return (JSON.parse(resultText) as { isError?: unknown }).isError === true
}

/** How the state of a task begins that ended like this: a store can look for it. */
export function statePrefixOf(outcome: Exclude<TaskOutcome, 'cancelled'>): string {
  return `{"ended":"${outcome}"`
}
