// The peers that this package does not depend on. They are installed here when they are needed first, and their versions are exact.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('.', import.meta.url))
const installMilliseconds = 420_000

/** Undefined, or why they are not there. */
export function installExtraPeers() {
  if (existsSync(`${folder}node_modules/.package-lock.json`)) return undefined
  const args = ['ci', '--no-engine-strict', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund']
  const { status, signal, stderr } = spawnSync('npm', args, {
    cwd: folder,
    timeout: installMilliseconds,
    encoding: 'utf8',
  })
  if (status === 0) return undefined
  return `npm ${args.join(' ')} failed (${signal ?? status}): ${(stderr ?? '').trim().split('\n').at(-1)}`
}

/** The version of a package that this one depends on, or of an extra peer. */
export function versionOf(name) {
  for (const place of [`${folder}node_modules/`, fileURLToPath(new URL('../../node_modules/', import.meta.url))]) {
    const file = `${place}${name}/package.json`
    if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')).version
  }
  return 'not installed'
}
