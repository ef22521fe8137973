// Reads a skill from a folder. Only for hosts that have a file system.
import { readdir, readFile } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { RallyError } from '../protocol/errors.ts'
import { SKILL_FILE, SKILL_LIMITS } from '../protocol/skills.ts'
import { reasonOf } from '../protocol/text.ts'
import type { SkillFolder } from './skill.ts'

/**
 * Reads a skill for `app.skill()`: all files of the folder and its subfolders, except those whose names begin with a dot. Rejects if
 * there is a symbolic link, because it could lead to a file that is not meant for clients.
 *
 * @example
 * app.skill('refunds', await skillFolder('skills/refunds'))
 */
export async function skillFolder(
  folder: string,
  guard: Pick<SkillFolder, 'scopes' | 'visible'> = {},
): Promise<SkillFolder> {
  const files: Record<string, Uint8Array> = {}
  let count = 0
  let bytes = 0
  for (const path of await filesOf(folder)) {
    if ((count += 1) > SKILL_LIMITS.files) throw invalid(folder, `it has more than ${SKILL_LIMITS.files} files`)
    const content = await readFile(join(folder, path))
    if ((bytes += content.byteLength) > SKILL_LIMITS.bytes) {
      throw invalid(folder, `its files have more than ${SKILL_LIMITS.bytes} bytes`)
    }
    files[path.replaceAll(sep, '/')] = content
  }
  const manifest = files[SKILL_FILE]
  if (manifest === undefined) throw invalid(folder, `it has no ${SKILL_FILE}`)
  const { readSkillText } = await import('../protocol/frontmatter.ts')
  try {
    const { frontmatter } = readSkillText(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(manifest))
    return { ...guard, frontmatter, files }
  } catch (error) {
    throw invalid(join(folder, SKILL_FILE), reasonOf(error))
  }
}

async function filesOf(folder: string, below = ''): Promise<string[]> {
  const found: string[] = []
  for (const entry of await readdir(join(folder, below), { withFileTypes: true })) {
    const path = join(below, entry.name)
    if (entry.name.startsWith('.')) continue
    if (entry.isDirectory()) found.push(...(await filesOf(folder, path)))
    else if (entry.isFile()) found.push(path)
    else throw invalid(join(folder, path), 'it must be a file or a folder, and not a link')
  }
  return found
}

function invalid(where: string, why: string): RallyError {
  return new RallyError('SKILL_INVALID', `skillFolder(): ${where} cannot be used: ${why}.`)
}
