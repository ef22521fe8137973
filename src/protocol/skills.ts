// Skills (SEP-2640): folders of instructions for a model, which a server offers as resources and lists by methods of their own.
import type { Meta } from './messages.ts'

/** The extension by which a server says that it has skills. */
export const SKILLS_EXTENSION = 'io.modelcontextprotocol/skills'

/** The file that every skill has at its root. */
export const SKILL_FILE = 'SKILL.md'

/** The `mimeType` of a directory in `resources/directory/read`. */
export const DIRECTORY_TYPE = 'inode/directory'

/** Every host accepts a skill of this size. Some refuse larger ones. */
export const SKILL_LIMITS = { files: 512, bytes: 16_777_216 } as const

/** A skill, as `skills/list` and `skills/get` describe it. */
export interface Skill {
  /** Of its SKILL.md. */
  uri: string
  /** That of its SKILL.md, field by field. */
  frontmatter: SkillFrontmatter
  /** All of its files, or `dynamic` if the server makes them for each request. */
  resources: SkillResource[] | 'dynamic'
  /** What the server adds for programs. */
  _meta?: Meta
}

/** The frontmatter of a SKILL.md. */
export interface SkillFrontmatter {
  /** The name of the skill. */
  name: string
  /** Tells the model what the skill is for, and when to use it. */
  description: string
  /** Other fields, as the file has them. */
  [field: string]: unknown
}

/** A file of a skill, with what a host needs to verify it. */
export interface SkillResource {
  /** The URI of the file. */
  uri: string
  /** `sha256:` and 64 lower-case hexadecimal digits, of the bytes of the file. */
  digest: string
  /** In bytes. */
  size: number
}

const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/

/** What is wrong with the frontmatter of a skill, by the rules of Agent Skills; `undefined` if it is valid. */
export function frontmatterProblem({
  name,
  description,
  compatibility,
  metadata,
}: Record<string, unknown>): string | undefined {
  if (typeof name !== 'string' || name.length > 64 || !NAME.test(name)) {
    return '`name` must be 1 to 64 lower-case letters, digits and single hyphens'
  }
  if (!isOfLength(description, 1_024)) return '`description` must be a string of 1 to 1024 characters'
  if (compatibility !== undefined && !isOfLength(compatibility, 500)) {
    return '`compatibility` must be a string of 1 to 500 characters'
  }
  if (metadata !== undefined && !isMapOfStrings(metadata)) return '`metadata` must be an object of strings'
  return undefined
}

function isOfLength(text: unknown, most: number): boolean {
  // A character may take two UTF-16 units.
  return (
    typeof text === 'string' &&
    text !== '' &&
    (text.length <= most || (text.length <= 2 * most && Array.from(text).length <= most))
  )
}

function isMapOfStrings(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return Object.values(value).every((each) => typeof each === 'string')
}
