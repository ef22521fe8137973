// A carrier that keeps the journal while a pass runs, instead of taking it over when the pass has ended.
import type { OpenQuestion } from './carry.ts'
import type { Journal } from './journal.ts'

export interface JournalWriter {
  /** Writes what of the journal is not kept yet. The handler hears of nothing before; where it rejects, the pass fails. */
  persist(journal: Journal): Promise<void>
  /** These questions are open now, by their keys, while steps go on beside them. */
  show(questions: ReadonlyMap<string, ShownQuestion>): void
}

export interface ShownQuestion extends OpenQuestion {
  /** On the wire. */
  readonly text: string
}
