// Makes a server's text safe for a terminal. The cleaned text cannot move the cursor, change colours, reorder or hide what
// is shown, or be longer than a screen.

/** Colour codes are common and harmless, so they are removed silently. Every other control character is shown escaped. */
// oxlint-disable-next-line no-control-regex -- the escape character is what is looked for
const COLOURS = /\u001B\[[\d;:]*m/g

/** Control and format characters (including bidirectional ones), unusual line breaks, lone surrogates. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

/** Line breaks, tabs, and the two joiners that some scripts and emoji need. */
const SAFE = new Set(['\n', '\t', '\u200C', '\u200D'])

const LONGEST_LINE = 300
const LONGEST_TEXT = 4_000
const MOST_LINES = 60

/** Text of several lines, with at most `most` characters. A value that is not a string is shown as JSON. */
export function clean(said: unknown, most = LONGEST_TEXT): string {
  const whole = cut(textOf(said), most).replaceAll('\r\n', '\n').replaceAll(COLOURS, '')
  return whole.replaceAll(UNSAFE, (char) => (SAFE.has(char) ? char : escaped(char)))
}

/** The same, with at most as many lines as fit on a screen. */
export function cleanMessage(said: unknown): string {
  const lines = clean(said).trim().split('\n')
  if (lines.length <= MOST_LINES) return lines.join('\n')
  return [...lines.slice(0, MOST_LINES), `(${lines.length - MOST_LINES} more lines)`].join('\n')
}

/** Text on one line, for names, titles and table cells. */
export function cleanLine(said: unknown, most = LONGEST_LINE): string {
  return clean(said, most).replaceAll(/\s+/g, ' ').trim()
}

/** JSON for scripts: the same value, with every character escaped that a terminal would interpret. */
export function cleanJson(value: unknown, indent = 0): string {
  return JSON.stringify(value, null, indent).replaceAll(UNSAFE, (char) => (SAFE.has(char) ? char : asJson(char)))
}

function textOf(said: unknown): string {
  return typeof said === 'string' ? said : (JSON.stringify(said) ?? '')
}

/** The beginning of a text, and the number of characters that are missing. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text
  return `${text.slice(0, most)}... (${text.length - most} more characters)`
}

function escaped(char: string): string {
  const code = char.codePointAt(0) ?? 0
  return code <= 0xff ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`
}

/** JSON escapes the two halves of a surrogate pair separately. */
function asJson(char: string): string {
  return Array.from({ length: char.length }, (_, index) => {
    return `\\u${char.charCodeAt(index).toString(16).padStart(4, '0')}`
  }).join('')
}
