// Registers skills (SEP-2640): each file of a skill is a resource, and the skill has an entry with the digests of its files.
import { createHash } from 'node:crypto'
import { RallyError } from '../protocol/errors.ts'
import { assertJson, isObject } from '../protocol/json.ts'
import type { Resource } from '../protocol/messages.ts'
import type { Skill, SkillFrontmatter } from '../protocol/skills.ts'
import { DIRECTORY_TYPE, frontmatterProblem, SKILL_FILE, SKILL_LIMITS } from '../protocol/skills.ts'
import { shown } from '../protocol/text.ts'
import type { RegisteredResource } from './resource.ts'
import { registerResource } from './resource.ts'
import type { Guarded, Visible } from './visibility.ts'

/** Who may use a skill. */
interface SkillGuard {
  /** The OAuth scopes that the caller needs. Default: none. */
  scopes?: readonly string[]
  /** Hides it from callers for whom this returns false. Default: every caller may know of it. */
  visible?: Visible
}

/** Options of `app.skill()`. */
export interface SkillOptions extends SkillGuard {
  /** Tells the model what the skill is for, and when to use it. */
  description: string
  /** Further fields of the frontmatter, such as `license` or `metadata`. Default: none. */
  frontmatter?: Readonly<Record<string, unknown>>
  /** Further files, by their path in the skill, such as `references/limits.md`. Default: none. */
  files?: Readonly<Record<string, string | Uint8Array>>
}

/** A skill with its SKILL.md as it is, such as `skillFolder()` of mcp-rally/node reads it. */
export interface SkillFolder extends SkillGuard {
  /** That of SKILL.md, parsed. */
  readonly frontmatter: Readonly<Record<string, unknown>>
  /** All files by their path, SKILL.md among them. */
  readonly files: Readonly<Record<string, string | Uint8Array>>
}

export interface RegisteredSkill extends Guarded {
  readonly kind: 'skill'
  readonly path: string
  /** Its entry in `skills/list`. */
  readonly listing: Skill
  /** Its SKILL.md. */
  readonly manifest: RegisteredResource
  /** Its other files, by URI. */
  readonly files: ReadonlyMap<string, RegisteredResource>
  /** Its folders, by URI. */
  readonly directories: ReadonlyMap<string, SkillDirectory>
}

/** A folder of a skill, with its direct children. */
export interface SkillDirectory extends Guarded {
  readonly kind: 'directory'
  readonly children: readonly Resource[]
}

export function registerSkill(
  path: string,
  folder: SkillOptions | SkillFolder,
  instructions?: string,
): RegisteredSkill {
  const where = `Skill ${shown(path)}`
  if (typeof path !== 'string' || !PATH.test(path)) {
    throw invalid(`${where}: the path must be a name, or names joined by slashes, of a-z 0-9 - . _`)
  }
  if (!isObject(folder) || (typeof instructions !== 'string' && !isObject(folder['files']))) {
    throw invalid(`${where}: it needs options and instructions. Write app.skill(path, options, instructions)`)
  }
  const { scopes, visible }: SkillGuard = folder
  const { frontmatter, files } =
    instructions === undefined
      ? (folder as unknown as SkillFolder)
      : inlineFolder(where, nameOf(path), folder as unknown as SkillOptions, instructions)
  checkFrontmatter(where, frontmatter)
  if (frontmatter['name'] !== nameOf(path)) {
    throw invalid(`${where}: the path must end with the name in ${SKILL_FILE}, got ${shown(frontmatter['name'])}`)
  }
  const contents = readFiles(where, path, files)
  const uri = uriOf(path, SKILL_FILE)
  const manifest = contents.find((file) => file.uri === uri)
  if (manifest === undefined) throw invalid(`${where}: it has no ${SKILL_FILE}`)
  const visibility = visible && { where, test: visible }
  const guard = { ...(scopes && { scopes }), ...(visible && { visible }) }
  const toResource = (file: SkillFile): RegisteredResource =>
    registerResource(file.uri, { ...file.listing, ...guard }, () => file.content)
  const { name, description } = frontmatter as SkillFrontmatter
  return {
    kind: 'skill',
    path,
    scopes,
    visible: visibility,
    listing: {
      uri,
      frontmatter: frontmatter as SkillFrontmatter,
      resources: contents.map(({ uri: of, digest, listing: { size } }) => ({ uri: of, digest, size })),
    },
    manifest: toResource({ ...manifest, listing: { ...manifest.listing, name, description } }),
    files: new Map(contents.filter((file) => file !== manifest).map((file) => [file.uri, toResource(file)])),
    directories: directoriesOf(path, contents, { scopes, visible: visibility }),
  }
}

/** A name, perhaps below folders: the first one stands where a URI has its host. */
const PATH = /^[a-z0-9][a-z0-9._-]*(?:\/[a-z0-9][a-z0-9._-]*)*$/

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

function inlineFolder(
  where: string,
  name: string,
  { description, frontmatter: more = {}, files = {} }: SkillOptions,
  instructions: string,
): Pick<SkillFolder, 'frontmatter' | 'files'> {
  if (Object.hasOwn(files, SKILL_FILE)) {
    throw invalid(`${where}: \`files\` must not contain ${SKILL_FILE}, which is made of the instructions`)
  }
  const frontmatter = { ...more, name, description }
  checkFrontmatter(where, frontmatter)
  // JSON is YAML, if each value stays on its line and non-printable characters are escaped.
  const yaml = Object.entries(frontmatter).map(([field, value]) => `${printable(field)}: ${printable(value)}\n`)
  return { frontmatter, files: { ...files, [SKILL_FILE]: `---\n${yaml.join('')}---\n\n${instructions}` } }
}

function checkFrontmatter(where: string, frontmatter: SkillFolder['frontmatter']): void {
  const problem = isObject(frontmatter) ? frontmatterProblem(frontmatter) : '`frontmatter` must be an object'
  if (problem !== undefined) throw invalid(`${where}: ${problem}`)
  assertJson(frontmatter, `${where}: \`frontmatter\``)
}

function printable(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** A file of a skill, with what lists say about it. */
interface SkillFile {
  /** In the skill. */
  readonly path: string
  readonly uri: string
  readonly content: string | Uint8Array
  readonly digest: string
  readonly listing: {
    readonly name: string
    readonly mimeType: string
    readonly size: number
    readonly description?: string
  }
}

function readFiles(where: string, path: string, files: SkillFolder['files']): SkillFile[] {
  const entries = Object.entries(files).toSorted(([a], [b]) => (a < b ? -1 : 1))
  if (entries.length > SKILL_LIMITS.files) {
    throw invalid(`${where}: it must have at most ${SKILL_LIMITS.files} files, got ${entries.length}`)
  }
  let total = 0
  return entries.map(([file, given]) => {
    if (!isSafe(file)) {
      throw invalid(`${where}: the file ${shown(file)} must be a relative path without . and .. that a URI can hold`)
    }
    const uri = uriOf(path, file)
    const bytes = typeof given === 'string' ? Buffer.from(given) : given
    total += bytes.byteLength
    if (total > SKILL_LIMITS.bytes) throw invalid(`${where}: its files must have at most ${SKILL_LIMITS.bytes} bytes`)
    return {
      path: file,
      uri,
      content: typeof given === 'string' ? given : (textOf(given) ?? Uint8Array.from(given)),
      digest: `sha256:${createHash('sha256').update(bytes).digest('hex')}`,
      listing: { name: nameOf(file), mimeType: typeOf(file), size: bytes.byteLength },
    }
  })
}

/** Otherwise two paths could have the same URI, or a path could lead out of the skill. */
function isSafe(file: string): boolean {
  if (!file.isWellFormed() || file.split('/').some((name) => name === '' || name === '.' || name === '..')) return false
  const uri = uriOf('skill', file)
  return new URL(uri).href === uri
}

/** The text, if its bytes are exactly these. */
function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function uriOf(path: string, file: string): string {
  return `skill://${path}/${file.split('/').map(encodeURIComponent).join('/')}`
}

/** Every folder in which there is a file. */
function directoriesOf(path: string, files: readonly SkillFile[], guard: Guarded): Map<string, SkillDirectory> {
  const children = new Map<string, Map<string, Resource>>()
  for (const { path: file, uri, listing } of files) {
    const names = file.split('/')
    for (let depth = names.length; depth > 0; depth -= 1) {
      const parent = `skill://${[path, ...names.slice(0, depth - 1).map(encodeURIComponent)].join('/')}`
      const name = names[depth - 1] ?? ''
      const child =
        depth === names.length
          ? { uri, ...listing }
          : { uri: `${parent}/${encodeURIComponent(name)}`, name, mimeType: DIRECTORY_TYPE }
      const siblings = children.get(parent) ?? new Map<string, Resource>()
      children.set(parent, siblings.set(name, child))
    }
  }
  return new Map(
    [...children].map(([uri, each]) => [uri, { kind: 'directory', ...guard, children: [...each.values()] }]),
  )
}

function typeOf(file: string): string {
  return TYPES.get(file.slice(file.lastIndexOf('.') + 1).toLowerCase()) ?? 'application/octet-stream'
}

const TYPES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    md: 'text/markdown',
    txt: 'text/plain',
    csv: 'text/csv',
    html: 'text/html',
    css: 'text/css',
    js: 'text/javascript',
    mjs: 'text/javascript',
    ts: 'text/typescript',
    py: 'text/x-python',
    sh: 'application/x-sh',
    json: 'application/json',
    yaml: 'application/yaml',
    yml: 'application/yaml',
    xml: 'application/xml',
    pdf: 'application/pdf',
    svg: 'image/svg+xml',
    png: 'image/png',
    jpg: 'image/jpeg',
    jpeg: 'image/jpeg',
    gif: 'image/gif',
    webp: 'image/webp',
  }),
)

function invalid(why: string): RallyError {
  return new RallyError('SKILL_INVALID', `${why}.`)
}
