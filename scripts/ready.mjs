// Makes a clone ready to run: installs dependencies, and builds the package and the examples if they have changed.
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const installed = join(root, 'node_modules/.package-lock.json')
/** Its modification time is the start of the last successful build. */
const built = join(root, 'dist-examples/.built')

if (!existsSync(installed) || !sameVersions(join(root, 'package-lock.json'), installed))
  run('npm', ['ci', '--no-audit', '--no-fund'])
// Only if needed: another process may be reading the files that a build replaces.
if (!isBuilt()) {
  const began = new Date()
  run('node', ['scripts/build.mjs'])
  run('node', ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.examples.json'])
  writeFileSync(built, '')
  utimesSync(built, began, began)
}
linkCommand()

/** Makes `npx mcp-rally`, as in the demo and the README, run this clone. */
function linkCommand() {
  const link = join(root, 'node_modules/.bin/rally')
  if (process.platform === 'win32') return
  chmodSync(join(root, 'dist/cli.js'), 0o755)
  if (existsSync(link)) return
  rmSync(link, { force: true })
  symlinkSync('../../dist/cli.js', link)
}

function run(command, args) {
  // The output of the build must not mix with the messages of a stdio server.
  // On Windows npm is a script, which only a shell runs.
  const shell = process.platform === 'win32' && command === 'npm'
  const { status, error } = spawnSync(command, args, { cwd: root, shell, stdio: ['ignore', 2, 2] })
  if (error) throw error
  if (status !== 0) process.exit(status ?? 1)
}

function isBuilt() {
  if (!existsSync(built) || !existsSync(join(root, 'dist/index.js'))) return false
  const { mtimeMs } = statSync(built)
  const sources = ['src', 'examples', 'package.json', 'node_modules/.package-lock.json']
  for (const name of readdirSync(root)) if (/^tsconfig.*\.json$/.test(name)) sources.push(name)
  // The time of a folder changes when a file in it is added or removed.
  for (const folder of ['src', 'examples'])
    for (const name of readdirSync(join(root, folder), { recursive: true })) sources.push(join(folder, name))
  return sources.every((path) => statSync(join(root, path)).mtimeMs < mtimeMs)
}

function sameVersions(wantedFile, haveFile) {
  const wanted = JSON.parse(readFileSync(wantedFile, 'utf8')).packages
  const have = JSON.parse(readFileSync(haveFile, 'utf8')).packages
  return (
    Object.entries(have).every(([path, { version }]) => wanted[path]?.version === version) &&
    Object.entries(wanted).every(([path, entry]) => path === '' || entry.optional || path in have)
  )
}
