// Text from a server, made fit for a terminal. Nothing in it may move the cursor, change the colours, reorder what is
// shown or hide from view; and it may not be longer than a screen can take.

/** Colours are harmless and common: they go without a trace. Everything else is shown for what it is. */
// oxlint-disable-next-line no-control-regex -- the escape character is what is looked for
const COLOURS = /\u001B\[[\d;:]*m/g

/** Controls, format characters (bidirectional ones among them), odd line breaks, halves of characters. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

/** Line breaks and tabs, and the two joiners that scripts and emoji need. */
const SAFE = new Set(['\n', '\t', '\u200C', '\u200D'])

const LONGEST_LINE = 300
const LONGEST_TEXT = 4_000
const MOST_LINES = 60

/** Several lines. `most` bounds its characters. What should be text and is not is shown as JSON. */
export function clean(said: unknown, most = LONGEST_TEXT): string {
  const whole = cut(textOf(said), most).replaceAll('\r\n', '\n').replaceAll(COLOURS, '')
  return whole.replaceAll(UNSAFE, (char) => (SAFE.has(char) ? char : escaped(char)))
}

/** The same, and no more lines than fit on a screen. */
export function cleanMessage(said: unknown): string {
  const lines = clean(said).trim().split('\n')
  if (lines.length <= MOST_LINES) return lines.join('\n')
  return [...lines.slice(0, MOST_LINES), `(${lines.length - MOST_LINES} more lines)`].join('\n')
}

/** One line, for names, titles and cells of tables. */
export function cleanLine(said: unknown, most = LONGEST_LINE): string {
  return clean(said, most).replaceAll(/\s+/g, ' ').trim()
}

/** JSON for scripts: the same value, without a character that a terminal would act on. */
export function cleanJson(value: unknown, indent = 0): string {
  return JSON.stringify(value, null, indent).replaceAll(UNSAFE, (char) => (SAFE.has(char) ? char : asJson(char)))
}

function textOf(said: unknown): string {
  return typeof said === 'string' ? said : (JSON.stringify(said) ?? '')
}

/** The beginning of a text, and how much is missing. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text
  return `${text.slice(0, most)}... (${text.length - most} more characters)`
}

function escaped(char: string): string {
  const code = char.codePointAt(0) ?? 0
  return code <= 0xff ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`
}

/** JSON escapes the two halves of a character on their own. */
function asJson(char: string): string {
  return Array.from({ length: char.length }, (_, index) => {
    return `\\u${char.charCodeAt(index).toString(16).padStart(4, '0')}`
  }).join('')
}
