// Where a pass is on its way out. It only moves down the list, and ends as the kind of its outcome.
import type { Outcome, PassInput } from './carrier.ts'

/**
 * - running: steps start, and the handler is heard.
 * - leaving: another instance is to continue the flow. No step starts; the handler is still heard.
 * - yielded: leaving, and stopped at a yield. The handler is not heard any more; running steps are still recorded.
 * - detaching: stopped at a detach, like yielded. The flow continues as a task.
 * - returned: in a strict pass, the handler has returned while something ran that nothing awaits. No call begins, and nothing is
 *   recorded any more; the pass only waits whether that fails.
 */
export type Phase = 'running' | 'leaving' | 'yielded' | 'detaching' | 'returned' | Outcome['kind']

/** True if the pass has ended. */
export function isOver(phase: Phase): boolean {
  switch (phase) {
    case 'running':
    case 'leaving':
    case 'yielded':
    case 'detaching':
    case 'returned':
      return false
    default:
      return true
  }
}

/** A pass whose handler has returned. */
export interface ReturnedPass {
  readonly input: PassInput
  /** True if the flow has asked through io, in this round or an earlier one. */
  readonly hasAsked: boolean
  /** True if the handler has declared needs. */
  readonly hasNeeds: boolean
}

/** How the values of a handler end its pass. */
export interface HandlerEnds {
  /** Turns what the handler returned into the outcome. */
  readonly conclude: (value: unknown, pass: ReturnedPass) => Outcome
  /** True if what the handler threw counts as returned. */
  readonly isResult: (thrown: unknown) => boolean
}
