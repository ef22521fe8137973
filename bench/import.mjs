// How long a fresh process takes to import Rally and the official server: medians, the two in turn.
// As a program, `node bench/import.mjs`, it prints them.
import { execFile } from 'node:child_process'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { median } from './median.mjs'
import { table } from './table.mjs'

const run = promisify(execFile)
const packages = {
  rally: new URL('../dist/index.js', import.meta.url).href,
  official: import.meta.resolve('@modelcontextprotocol/server'),
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) console.log(importTable(await measureImports()))

export async function measureImports({ times = 15, names = Object.keys(packages) } = {}) {
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

async function importOnce(url) {
  const program = `const t = performance.now(); await import(${JSON.stringify(url)}); console.log(performance.now() - t)`
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', program], { timeout: 10_000 })
  return Number(stdout)
}
