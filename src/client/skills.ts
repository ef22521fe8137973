// Skills of a server (SEP-2640). A file is verified against the entry of its skill before anybody sees it: the digests in the entry
// are what a user approved.
import { isObject } from '../protocol/json.ts'
import type { ReadResourceResult } from '../protocol/messages.ts'
import type { Skill, SkillResource } from '../protocol/skills.ts'
import { frontmatterProblem, SKILL_FILE } from '../protocol/skills.ts'
import { quoted, reasonOf, shown } from '../protocol/text.ts'
import { badResponse, ClientError } from './errors.ts'
import { fits, isText, MAX_BYTES } from './server-text.ts'

/** A file of a skill. */
export interface SkillFile {
  /** The URI of the file. */
  readonly uri: string
  /** The type of the file, if the server said it. */
  readonly mimeType?: string
  /** The content of the file. */
  readonly bytes: Uint8Array
  /** Absent if the bytes are not UTF-8. */
  readonly text?: string
  /** True if size and digest are those of the entry. False only if the skill is `dynamic`: then there is nothing to compare with. */
  readonly isVerified: boolean
  /** The Markdown of SKILL.md after its frontmatter. Absent for other files. */
  readonly instructions?: string
}

/** What is wrong with an untrusted entry; `undefined` if it is valid. */
export function skillProblem(entry: unknown): string | undefined {
  const { uri, frontmatter, resources } = isObject(entry) ? entry : {}
  if (!isText(uri, MAX_BYTES.uri) || !URL.canParse(uri)) return '`uri` must be a URI'
  const root = rootOf(uri)
  if (root === undefined) return `\`uri\` must end with /${SKILL_FILE}`
  if (!isObject(frontmatter)) return '`frontmatter` must be an object'
  const problem = frontmatterProblem(frontmatter)
  if (problem !== undefined) return problem
  if (frontmatter['name'] !== root.slice(root.lastIndexOf('/') + 1)) return '`name` must be the name of its folder'
  if (resources === 'dynamic') return undefined
  if (!Array.isArray(resources) || !resources.every(isResource)) {
    return '`resources` must be a list of files with uri, digest and size'
  }
  const uris = new Set(resources.map((file) => file.uri))
  if (uris.size < resources.length) return '`resources` must list each file once'
  if (!uris.has(uri)) return `\`resources\` must contain ${SKILL_FILE}`
  return resources.every((file) => isWithin(root, file.uri)) ? undefined : '`resources` must be files of the skill'
}

/** Throws `BAD_RESPONSE` unless the entry is the one of this URI. */
export function checkSkill(entry: unknown, uri: string): Skill {
  const problem = skillProblem(entry)
  if (problem !== undefined) throw badResponse(`skills/get: ${problem}`)
  const skill = entry as Skill
  if (skill.uri !== uri) throw badResponse(`skills/get: the server sent ${quoted(skill.uri)} for ${quoted(uri)}`)
  return skill
}

/** The file that `path` names in the skill, before it is read. */
export function fileOf(skill: Skill, path: string): { uri: string; expected: SkillResource | undefined } {
  const problem = skillProblem(skill)
  if (problem !== undefined) throw unverified(skill.uri, `its entry is not valid: ${problem}`)
  const uri = `${rootOf(skill.uri)}/${path.split('/').map(encodeURIComponent).join('/')}`
  if (skill.resources === 'dynamic') {
    if (isWithin(String(rootOf(skill.uri)), uri)) return { uri, expected: undefined }
    throw unverified(uri, 'the path leads out of the skill')
  }
  // Servers may encode a name in another way.
  const expected = skill.resources.find((file) => file.uri === uri || decoded(file.uri) === decoded(uri))
  if (expected === undefined) throw unverified(uri, 'the entry of the skill does not list it')
  return { uri: expected.uri, expected }
}

/** Throws `SKILL_UNVERIFIED` unless the contents are the ones that the entry promises. */
export async function verifiedFile(
  skill: Skill,
  { uri, expected }: ReturnType<typeof fileOf>,
  { contents }: ReadResourceResult,
): Promise<SkillFile> {
  const content = contents.find((each) => each.uri === uri) ?? contents[0]
  const bytes = content === undefined ? undefined : bytesOf(content)
  if (content === undefined || bytes === undefined) throw unverified(uri, 'the server sent no contents')
  if (expected !== undefined) await compare(uri, bytes, expected)
  const text = textOf(bytes)
  const { mimeType } = content
  return {
    uri,
    ...(typeof mimeType === 'string' && { mimeType }),
    bytes,
    ...(text !== undefined && { text }),
    isVerified: expected !== undefined,
    ...(uri === skill.uri && { instructions: await readInstructions(skill, text) }),
  }
}

async function compare(uri: string, bytes: Uint8Array<ArrayBuffer>, { size, digest }: SkillResource): Promise<void> {
  if (bytes.byteLength !== size) throw unverified(uri, `it must have ${size} bytes, got ${bytes.byteLength}`)
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  const hex = Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('')
  if (digest !== `sha256:${hex}`) throw unverified(uri, 'its digest differs from the one in the entry of the skill')
}

/** The frontmatter of the file must be that of the entry, which is all that the user has seen. */
async function readInstructions(skill: Skill, text: string | undefined): Promise<string> {
  if (text === undefined) throw unverified(skill.uri, 'it must be UTF-8 text')
  const { readSkillText } = await import('../protocol/frontmatter.ts')
  let file: ReturnType<typeof readSkillText>
  try {
    file = readSkillText(text)
  } catch (error) {
    throw unverified(skill.uri, reasonOf(error))
  }
  const { frontmatter } = file
  const fields = new Set([...Object.keys(frontmatter), ...Object.keys(skill.frontmatter)])
  for (const field of fields) {
    if (!isSame(frontmatter[field], skill.frontmatter[field])) {
      throw unverified(skill.uri, `the field ${quoted(field)} of its frontmatter differs from the entry of the skill`)
    }
  }
  return file.body
}

function isSame(a: unknown, b: unknown): boolean {
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((each, index) => isSame(each, b[index]))
  }
  if (!isObject(a)) return a === b
  if (!isObject(b)) return false
  const names = Object.keys(a)
  return (
    names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && isSame(a[name], b[name]))
  )
}

const DIGEST = /^sha256:[0-9a-f]{64}$/

function isResource(file: unknown): file is SkillResource {
  const { uri, digest, size } = isObject(file) ? file : {}
  const isNamed = typeof uri === 'string' && fits(uri, MAX_BYTES.uri) && URL.canParse(uri)
  return isNamed && typeof digest === 'string' && DIGEST.test(digest) && Number.isSafeInteger(size) && Number(size) >= 0
}

/** The URI of the skill's folder. */
function rootOf(uri: string): string | undefined {
  return uri.endsWith(`/${SKILL_FILE}`) ? uri.slice(0, -SKILL_FILE.length - 1) : undefined
}

function isWithin(root: string, uri: string): boolean {
  if (!uri.startsWith(`${root}/`) || /[?#]/.test(uri)) return false
  const names = uri.slice(root.length + 1).split('/')
  return names.map(decoded).every((name) => name !== '' && name !== '.' && name !== '..' && !/[/\\\0]/.test(name))
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function bytesOf({ text, blob }: { text?: unknown; blob?: unknown }): Uint8Array<ArrayBuffer> | undefined {
  if (typeof text === 'string') return new TextEncoder().encode(text)
  if (typeof blob !== 'string') return undefined
  try {
    return Uint8Array.from(atob(blob), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function unverified(uri: string, why: string): ClientError {
  return new ClientError('SKILL_UNVERIFIED', `The file ${shown(uri)} cannot be trusted: ${why}. Do not use it.`)
}
