// Watches the code of a project: every folder but those of packages, builds and tools. Node's own recursive watch would walk
// node_modules.
import type { FSWatcher } from 'node:fs'
import { readdirSync, watch } from 'node:fs'
import { extname, join } from 'node:path'

const CODE = new Set(['.ts', '.mts', '.cts', '.tsx', '.js', '.mjs', '.cjs', '.jsx', '.env'])
const LEFT_OUT = new Set(['node_modules', 'dist', 'build', 'coverage'])
/** It was removed already, or is not a folder. */
const GONE = new Set(['ENOENT', 'ENOTDIR'])
/** Editors write a file in several steps, and a checkout writes several files. */
const QUIET_MS = 100

/**
 * Calls `changed` with the path that changed first, once things are quiet. `tell` gets a line about what cannot be watched. Returns
 * the function that ends it.
 */
export function watchCode(
  folders: readonly string[],
  changed: (path: string) => void,
  tell: (line: string) => void,
): () => void {
  const watchers = new Map<string, FSWatcher>()
  /** Past the limit of the system, every further folder fails in the same way. */
  const told = new Set<string>()
  let first: string | undefined
  let timer: NodeJS.Timeout | undefined
  const add = (folder: string): void => {
    if (watchers.has(folder)) return
    let names: string[]
    try {
      const watcher = watch(folder, (_event, name) => notice(folder, name))
      watchers.set(folder, watcher)
      // The folder was removed.
      watcher.on('error', () => remove(folder))
      names = readdirSync(folder, { withFileTypes: true }).flatMap((each) => (each.isDirectory() ? [each.name] : []))
    } catch (error) {
      remove(folder)
      const { code = '' } = error as NodeJS.ErrnoException
      if (!told.has(code) && !GONE.has(code)) tell(unwatched(folder, code))
      told.add(code)
      return
    }
    for (const name of names) if (!isLeftOut(name)) add(join(folder, name))
  }
  const remove = (folder: string): void => {
    watchers.get(folder)?.close()
    watchers.delete(folder)
  }
  const notice = (folder: string, name: string | null): void => {
    if (name === null) return
    const path = join(folder, name)
    if (!isCode(name)) return isLeftOut(name) ? undefined : add(path)
    first ??= path
    clearTimeout(timer)
    timer = setTimeout(() => {
      changed(first ?? path)
      first = undefined
    }, QUIET_MS)
  }
  for (const folder of folders) add(folder)
  return () => {
    clearTimeout(timer)
    for (const folder of watchers.keys()) remove(folder)
  }
}

function unwatched(folder: string, code: string): string {
  const isLimit = code === 'ENOSPC' || code === 'EMFILE'
  const raise = isLimit ? 'Raise the limit of watched files (fs.inotify on Linux), or restart' : 'Restart'
  return `watch: ${folder} must be a folder that can be watched, got ${code}. ${raise} rally dev after a change there.`
}

/** Declarations are not: nothing of them runs, and `rally types` writes them while it talks to the server. */
function isCode(name: string): boolean {
  return (CODE.has(extname(name)) && !/\.d\.[cm]?ts$/.test(name)) || name === '.env'
}

function isLeftOut(name: string): boolean {
  return name.startsWith('.') || LEFT_OUT.has(name)
}
