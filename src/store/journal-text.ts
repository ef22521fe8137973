// The journal's text as a store cuts it up: what is between the brackets can be added to without being written again.
import { RallyError } from '../protocol/errors.ts'

/** What is between the brackets of a journal. */
export function entriesOf(journal: string): string {
  if (journal.startsWith('[') && journal.endsWith(']')) return journal.slice(1, -1)
  throw new RallyError(
    'STORE_JOURNAL',
    'A journal is the text of a JSON array, from its opening to its closing bracket.',
  )
}

/** The journal of these entries, in order. */
export function journalOf(parts: readonly string[]): string {
  return `[${parts.filter((part) => part !== '').join(',')}]`
}
