// Texts that databases do not take as they are: a NUL ends one early, and half a surrogate pair is no UTF-8.
// JSON text has neither. Names and messages may have both, and must come back as they were and match nothing else.

const MARK = '\u0001'

/** What is kept of a text: itself nearly always. */
export function toPlain(text: string): string {
  const isPlain = !text.includes('\0') && text.isWellFormed() && !text.startsWith(MARK)
  return isPlain ? text : MARK + JSON.stringify(text)
}

export function fromPlain(kept: string): string {
  return kept.startsWith(MARK) ? (JSON.parse(kept.slice(MARK.length)) as string) : kept
}
