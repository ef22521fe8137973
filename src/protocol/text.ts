// How values that others wrote appear in a message: cut to a length that a person reads, and quoted.

const LONGEST = 200

/** The beginning of a text. An ellipsis shows that the rest is missing. */
export function cut(text: string, most = LONGEST): string {
  return text.length > most ? `${text.slice(0, most)}…` : text
}

/** The beginning of a text in quotes, escaped so that nothing in it looks like a part of the message. */
export function quoted(text: string, most?: number): string {
  return JSON.stringify(cut(text, most))
}

/** A value of any type: a string in quotes, an object by its kind, because converting it could run code of others. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return quoted(value)
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}

/** The message of anything that was thrown. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof AggregateError && error.message === '') return error.errors.map(reasonOf).join('; ')
  return error.message
}
