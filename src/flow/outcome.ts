// What a pass comes to, for its carrier.
import type { Carry } from './carry.ts'
import type { Journal } from './journal.ts'

export type Outcome =
  | { kind: 'done'; value: unknown }
  /** `questions` holds the wire text of each question by its key. */
  | { kind: 'asks'; questions: Map<string, string>; journal: Journal; carry: Carry }
  | { kind: 'deferred'; journal: Journal; carry: Carry }
  /** To go on as a task. Questions that are open in the carry were not all shown. */
  | { kind: 'detached'; journal: Journal; carry: Carry }
  | { kind: 'failed'; error: unknown }
  | { kind: 'cancelled' }
