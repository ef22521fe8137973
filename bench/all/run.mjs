// `npm run bench -- all`: measures everything that docs/benchmarks.md shows, section by section, and writes the page, its pictures and the
// figures of the README from what was recorded. `--only journal,memory` measures some sections and keeps the others as recorded. `--only
// page` measures nothing. `--quick` is a trial: it writes into a temporary folder and leaves the record unchanged.
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { circumstances } from '../circumstances.mjs'
import { measureCalls } from './calls.mjs'
import { measureClientPairs } from './clients.mjs'
import { measureInstall } from './install.mjs'
import { measureJournal } from './journal.mjs'
import { measureLatency } from './latency.mjs'
import { measureMemory } from './memory.mjs'
import { pageOf } from './page.mjs'
import { withFigures } from './readme.mjs'
import { measureStart } from './start.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const recordFile = join(root, 'bench/results-all.json')
/** The most load before a run that should be recorded. */
const quiet = 0.5
const sections = {
  calls: measureCalls,
  clients: measureClientPairs,
  journal: measureJournal,
  memory: measureMemory,
  latency: measureLatency,
  start: measureStart,
  install: measureInstall,
}

export async function benchAll(args) {
  const { quick, names } = readOptions(args)
  const recorded = readJson(recordFile) ?? {}
  if (names.length > 0 && loadavg()[0] > quiet)
    console.error(`The load of this machine is ${loadavg()[0].toFixed(1)}: other work disturbs what is measured.`)
  const folder = quick ? mkdtempSync(join(tmpdir(), 'rally-bench-')) : root
  const failed = []
  for (const name of names) {
    const began = performance.now()
    console.log(`${name} ...`)
    try {
      const where = { ...circumstances(), ...(quick ? { isTrial: true } : {}) }
      recorded[name] = withoutPaths({ ...where, ...(await sections[name]({ quick })) })
      // After each section, so that a run that is ended keeps what it has measured.
      write(recorded, folder)
      console.log(`${name}: ${Math.round((performance.now() - began) / 1000)} s`)
    } catch (error) {
      // The section stays as it was recorded, with the date that it has.
      console.error(`${name} failed: ${error.message}`)
      failed.push(name)
    }
  }
  if (names.length === 0) write(recorded, folder)
  console.log(`Written to ${folder === root ? 'docs/benchmarks.md' : folder}`)
  if (failed.length > 0) throw new Error(`these sections failed: ${failed.join(', ')}`)
}

function write(measured, folder) {
  // In the order of the page, in whatever order the sections were run.
  const order = Object.keys(sections).filter((name) => name in measured)
  const recorded = Object.fromEntries(order.map((name) => [name, measured[name]]))
  const { page, pictures } = pageOf(recorded, readJson(join(root, 'bench/results-tasks.json')))
  for (const path of ['bench', 'docs/pictures']) mkdirSync(join(folder, path), { recursive: true })
  writeFileSync(join(folder, 'bench/results-all.json'), `${JSON.stringify(recorded, null, 2)}\n`)
  writeFileSync(join(folder, 'docs/benchmarks.md'), page)
  for (const [name, svg] of Object.entries(pictures)) writeFileSync(join(folder, 'docs/pictures', name), svg)
  writeFileSync(join(folder, 'README.md'), withFigures(readFileSync(join(root, 'README.md'), 'utf8'), recorded))
}

function readOptions(args) {
  const { values } = parseArgs({
    args,
    options: { quick: { type: 'boolean', default: false }, only: { type: 'string' } },
  })
  const all = Object.keys(sections)
  const named = values.only?.split(',') ?? all
  const names = named.filter((name) => name !== 'page')
  const unknown = names.filter((name) => !all.includes(name))
  if (unknown.length > 0)
    throw new Error(`--only takes some of ${all.join(',')}, or page, got ${JSON.stringify(unknown.join(','))}`)
  return { quick: values.quick, names }
}

/** The reasons of failures may name files of this machine. They have one line on the page. */
function withoutPaths({ failures = {}, ...measured }) {
  const reasons = Object.entries(failures).map(([name, reason]) => [name, plainReason(reason)])
  return { ...measured, ...(reasons.length > 0 ? { failures: Object.fromEntries(reasons) } : {}) }
}

function plainReason(reason) {
  const [line] = reason.split('\n')
  return line.replaceAll('`', "'").replaceAll(/(file:\/\/)?(\/[\w.@+-]+){2,}\/?/g, '…/')
}

function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    if (error.code === 'ENOENT') return undefined
    throw error
  }
}
