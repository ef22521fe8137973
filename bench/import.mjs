// How long a fresh process takes to import Rally and the official server, or other packages: medians, all in turn.
// As a program, `node bench/import.mjs`, it prints them.
import { execFile } from 'node:child_process'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { median } from './median.mjs'
import { table } from './table.mjs'

const run = promisify(execFile)
const ownPackages = {
  rally: new URL('../dist/index.js', import.meta.url).href,
  official: import.meta.resolve('@modelcontextprotocol/server'),
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) console.log(importTable(await measureImports()))

/** `packages` has the address of each by its name, or several addresses. */
export async function measureImports({ times = 15, packages = ownPackages, names = Object.keys(packages) } = {}) {
  const taken = Object.fromEntries(names.map((name) => [name, []]))
  // The first import of each fills the file cache and is not counted.
  for (const name of names) await importOnce(packages[name])
  for (let time = 0; time < times; time++)
    for (const name of time % 2 ? names.toReversed() : names) taken[name].push(await importOnce(packages[name]))
  return Object.fromEntries(names.map((name) => [name, Number(median(taken[name]).toFixed(1))]))
}

export function importTable(medians) {
  return table(
    ['import', 'ms'],
    Object.entries(medians).map(([name, milliseconds]) => [name, milliseconds.toFixed(1)]),
  )
}

async function importOnce(urls) {
  const imports = [urls].flat().map((url) => `await import(${JSON.stringify(url)})`)
  const program = `const t = performance.now(); ${imports.join('; ')}; console.log(performance.now() - t); process.exit()`
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', program], { timeout: 30_000 })
  return Number(stdout)
}
