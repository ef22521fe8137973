// Strings that SQLite cannot store as they are: a NUL ends a text early, and half a surrogate pair is not valid UTF-8.
// JSON text contains neither, so requests, states, outcomes and journals are stored as they are. Names and messages may contain both.
// They must come back unchanged, and two different names must never be stored as the same text.

const MARK = '\u0001'

/** The text as it is stored. Nearly every text is stored unchanged. */
export function toPlain(text: string): string {
  const isPlain = !text.includes('\0') && text.isWellFormed() && !text.startsWith(MARK)
  return isPlain ? text : MARK + JSON.stringify(text)
}

export function fromPlain(stored: string): string {
  return stored.startsWith(MARK) ? (JSON.parse(stored.slice(MARK.length)) as string) : stored
}
