// Builds an earlier commit in a temporary worktree, to run it beside this checkout. Its dependencies are those of this checkout.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Returns the URL of its `dist/`, and a function that removes it. */
export function buildOfCommit(commit) {
  const folder = join(mkdtempSync(join(tmpdir(), 'rally-commit-')), 'checkout')
  run('git', ['worktree', 'add', '--detach', folder, commit], root)
  const remove = () => {
    run('git', ['worktree', 'remove', '--force', folder], root)
    rmSync(dirname(folder), { recursive: true, force: true })
  }
  try {
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    run('node', ['scripts/build.mjs'], folder)
    rmSync(join(folder, 'dist-examples'), { recursive: true, force: true })
  } catch (error) {
    remove()
    throw error
  }
  return { dist: pathToFileURL(join(folder, 'dist/')).href, remove }
}

function run(command, args, cwd) {
  const { status, error, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  if (error) throw error
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed: ${stderr}`)
}
