// The official suite: installed on first use beside the Node it needs, run as a process, and what it wrote down.
//
// Its version is pinned in suite/. To change it, write the lock anew with `npm install --package-lock-only` in an empty folder
// that has only the other two files of suite/, so that it holds the Node of every platform.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const suite = join(import.meta.dirname, 'suite')
const lock = join(suite, 'package-lock.json')
/** A copy of the lock that was installed, put there last. */
const installed = join(suite, 'node_modules/.installed-lock.json')

const LONGEST_RUN_MS = 300_000

/** Installs what the lock pins, unless it is there. */
export function install() {
  if (existsSync(installed) && readFileSync(installed, 'utf8') === readFileSync(lock, 'utf8')) return
  // The suite is for a newer Node than the one that installs it.
  const args = ['ci', '--prefix', suite, '--ignore-scripts', '--no-engine-strict', '--no-audit', '--no-fund']
  const { status, error } = spawnSync('npm', args, { cwd: suite, stdio: ['ignore', 2, 2] })
  if (error) throw error
  if (status !== 0) throw new Error(`The conformance suite could not be installed: npm ended with ${status}.`)
  copyFileSync(lock, installed)
}

/**
 * Runs one command of the suite. Gives its exit status (`null` when it was ended), what it printed, and its scenarios,
 * each with its checks (`undefined` where it wrote none).
 */
export async function runSuite(command, args) {
  const results = mkdtempSync(join(tmpdir(), 'rally-conformance-'))
  try {
    const main = join(suite, 'node_modules/@modelcontextprotocol/conformance/dist/index.js')
    const child = spawn(join(suite, 'node_modules/.bin/node'), [main, command, ...args, '--output-dir', results], {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: LONGEST_RUN_MS,
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        output += text
      })
    }
    const [status] = await once(child, 'close')
    return { status, output, scenarios: readScenarios(results, command) }
  } finally {
    rmSync(results, { recursive: true, force: true })
  }
}

/** Each scenario has a folder, named for it and for when it ran. A scenario that threw leaves it empty. */
function readScenarios(results, command) {
  // The folders of client scenarios name no side, and a scenario whose name has a slash is in a folder further down.
  const prefix = command === 'client' ? '' : `${command}-`
  const folder = new RegExp(`^${prefix}(.+)-\\d{4}-\\d{2}-\\d{2}T[\\d-]+Z$`)
  return readdirSync(results, { recursive: true, encoding: 'utf8' })
    .filter((name) => folder.test(name))
    .toSorted()
    .map((name) => {
      const file = join(results, name, 'checks.json')
      return {
        name: folder.exec(name)[1],
        checks: existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined,
      }
    })
}
