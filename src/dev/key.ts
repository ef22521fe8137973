// The key of development: one for each project, kept in a file, so that calls that wait for an answer survive a restart.
//
// The file is for its owner alone, and git ignores its folder. A deployed server never reads it.
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const FOLDER = '.rally'
const NAME = 'dev-key'

/** The key of the project that has the file. Makes one on first use. */
export function developmentKey(file: string): string {
  const folder = join(projectOf(file), FOLDER)
  const path = join(folder, NAME)
  mkdirSync(folder, { recursive: true })
  writeNew(join(folder, '.gitignore'), '*\n', 0o644)
  writeNew(path, `${randomBytes(32).toString('base64url')}\n`, 0o600)
  chmodSync(path, 0o600)
  return readFileSync(path, 'utf8').trim()
}

/** The folder of the nearest package.json, or the one of the file. */
export function projectOf(file: string): string {
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder
    if (folder === dirname(folder)) return dirname(file)
  }
}

function writeNew(path: string, text: string, mode: number): void {
  try {
    writeFileSync(path, text, { mode, flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}
