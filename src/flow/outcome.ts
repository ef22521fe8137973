// What a pass comes to, for its carrier.
import type { FlowState } from './carry.ts'
import type { Journal } from './journal.ts'

export type Outcome =
  | { kind: 'done'; value: unknown }
  /** `questions` holds the wire text of each question by its key. */
  | { kind: 'asks'; questions: Map<string, string>; journal: Journal; carry: FlowState }
  | { kind: 'deferred'; journal: Journal; carry: FlowState }
  /** To go on as a task. Questions that are open in the carry were not all shown. */
  | { kind: 'detached'; journal: Journal; carry: FlowState }
  | { kind: 'failed'; error: unknown }
  | { kind: 'cancelled' }
