// Makes a clone ready to run: installs what is missing, builds the package and the examples.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const installed = join(root, 'node_modules/.package-lock.json')

if (!existsSync(installed) || !sameVersions(join(root, 'package-lock.json'), installed))
  run('npm', ['ci', '--no-audit', '--no-fund'])
run('node', ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'])
run('node', ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.examples.json'])

function run(command, args) {
  // What the build prints must not mix with a stdio server's messages.
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2] })
  if (error) throw error
  if (status !== 0) process.exit(status ?? 1)
}

function sameVersions(wantedFile, haveFile) {
  const wanted = JSON.parse(readFileSync(wantedFile, 'utf8')).packages
  const have = JSON.parse(readFileSync(haveFile, 'utf8')).packages
  return (
    Object.entries(have).every(([path, { version }]) => wanted[path]?.version === version) &&
    Object.entries(wanted).every(([path, entry]) => path === '' || entry.optional || path in have)
  )
}
