// Reads the YAML at the beginning of a SKILL.md. Loaded when a skill is read, because the parser is large.
import { parseDocument } from 'yaml'
import { assertJson, isObject } from './json.ts'

/** A longer frontmatter is not parsed: the text may come from a server that nobody trusts, and parsing takes time. */
const MAX_LENGTH = 16_384

export interface SkillText {
  readonly frontmatter: Record<string, unknown>
  /** The Markdown after the frontmatter. */
  readonly body: string
}

/** Throws an Error that says what is wrong. The text of the skill is not in it. */
export function readSkillText(text: string): SkillText {
  const [whole, yaml] = FRONTMATTER.exec(text) ?? []
  if (whole === undefined || yaml === undefined) throw new Error('it must begin with YAML between two lines of ---')
  if (yaml.length > MAX_LENGTH) throw new Error(`its frontmatter must be at most ${MAX_LENGTH} characters long`)
  return { frontmatter: readYaml(yaml), body: text.slice(whole.length) }
}

/** With a byte order mark, or line ends of Windows, it is the same file. */
const FRONTMATTER = /^\uFEFF?---[\t ]*\r?\n([\s\S]*?)(?<=\n)---[\t ]*(?:\r?\n|$)/

function readYaml(text: string): Record<string, unknown> {
  let value: unknown
  try {
    const document = parseDocument(text, { schema: 'core', prettyErrors: false })
    // An alias may stand for a value many times its own size.
    value = document.errors.length === 0 ? document.toJS({ maxAliasCount: 10 }) : undefined
    assertJson(value, 'The frontmatter')
  } catch {
    value = undefined
  }
  if (isObject(value)) return value
  throw new Error('its frontmatter must be a YAML mapping of values that JSON has too')
}
