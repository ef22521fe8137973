// What `npm install` brings into an empty folder: packages and bytes.
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const installMilliseconds = 300_000
const flags = ['--ignore-scripts', '--no-engine-strict', '--prefer-offline', '--no-audit', '--no-fund']

export async function measureInstall() {
  const folder = mkdtempSync(join(tmpdir(), 'rally-bench-install-'))
  try {
    // Packing builds by a script of the package; the build is there already.
    const packed = await npm(['pack', '--ignore-scripts', '--json', '--pack-destination', folder], root)
    const [{ filename }] = JSON.parse(packed)
    const specs = { rally: [join(folder, filename)], ...others() }
    const failures = {}
    const results = []
    // Nothing here is a matter of time, so they are installed side by side.
    await Promise.all(
      Object.entries(specs).map(async ([name, packages]) => {
        try {
          results.push({ name, ...(await installed(mkdtempSync(join(folder, 'empty-')), packages)) })
        } catch (error) {
          failures[name] = error.message.trim().split('\n')[0]
        }
      }),
    )
    const order = Object.keys(specs)
    results.sort((one, other) => order.indexOf(one.name) - order.indexOf(other.name))
    return { failures, results }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** In the versions that are measured elsewhere. */
function others() {
  const own = manifest(join(root, 'package.json')).devDependencies
  const extra = manifest(fileURLToPath(new URL('./package.json', import.meta.url))).dependencies
  return {
    official: ['@modelcontextprotocol/server', '@modelcontextprotocol/node'].map((name) => `${name}@${own[name]}`),
    v1: ['@modelcontextprotocol/sdk'].map((name) => `${name}@${own[name]}`),
    fastmcp: ['fastmcp'].map((name) => `${name}@${extra[name]}`),
    mcpUse: ['mcp-use'].map((name) => `${name}@${extra[name]}`),
  }
}

async function installed(folder, packages) {
  await npm(['install', ...flags, '--prefix', folder, ...packages], folder)
  const { packages: all } = manifest(join(folder, 'node_modules/.package-lock.json'))
  const files = readdirSync(join(folder, 'node_modules'), { recursive: true, withFileTypes: true })
  const sizes = files
    .filter((file) => file.isFile())
    .map(({ parentPath, path, name }) => statSync(join(parentPath ?? path, name)).size)
  return { packages: Object.keys(all).length, bytes: sizes.reduce((sum, size) => sum + size, 0) }
}

async function npm(args, cwd) {
  const { stdout } = await run('npm', args, { cwd, timeout: installMilliseconds, maxBuffer: 64 * 1024 * 1024 })
  return stdout
}

function manifest(file) {
  return JSON.parse(readFileSync(file, 'utf8'))
}
