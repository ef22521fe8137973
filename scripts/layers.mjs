// Fails when an import between rooms points backwards, or when files import each other in a cycle.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../src')

/** The rooms that each room may import. Files at the top of src/ are entries and may import any room. */
const allowed = {
  protocol: [],
  schema: ['protocol'],
  seal: ['protocol'],
  store: ['protocol'],
  flow: ['protocol', 'schema', 'store'],
  server: ['protocol', 'schema', 'seal', 'store', 'flow'],
  auth: ['protocol', 'schema', 'seal', 'store', 'flow', 'server'],
  hosts: ['protocol', 'schema', 'seal', 'store', 'flow', 'server', 'auth'],
  legacy: ['protocol', 'schema', 'seal', 'store', 'flow', 'server'],
  apps: ['protocol', 'schema', 'seal', 'store', 'flow', 'server'],
  tasks: ['protocol', 'schema', 'seal', 'store', 'flow', 'server'],
  client: ['protocol', 'schema'],
  dev: ['protocol', 'flow', 'server'],
  cli: ['protocol', 'schema', 'store', 'tasks', 'client', 'dev'],
  otel: ['protocol', 'flow', 'client'],
  testing: ['protocol', 'schema', 'seal', 'store', 'flow', 'server', 'hosts', 'tasks', 'client'],
}

const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !/\.test(-d)?\.ts$/.test(name))
  .map((name) => join(root, name))

const problems = []
const graph = new Map()
for (const file of files) {
  const edges = []
  for (const [, specifier] of readFileSync(file, 'utf8').matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+\.ts)'/g)) {
    const target = resolve(dirname(file), specifier)
    edges.push(target)
    const from = room(file)
    const to = room(target)
    if (from === undefined) continue
    if (!(from in allowed))
      problems.push(
        `${short(file)}: the room "${from}" is not in the design; add it to scripts/layers.mjs with what it may import`,
      )
    else if (to === undefined)
      problems.push(`${short(file)} imports the entry ${short(target)}; entries import rooms, never the other way`)
    else if (to !== from && !allowed[from].includes(to))
      problems.push(
        `${short(file)} imports ${short(target)}; ${from}/ may import only ${allowed[from].join(', ') || 'nothing of ours'}`,
      )
  }
  graph.set(file, edges)
}
for (const cycle of cycles(graph)) problems.push(`cycle: ${cycle.map(short).join(' -> ')}`)

if (problems.length > 0) {
  console.error(problems.join('\n'))
  process.exit(1)
}
console.log(`layers: ${files.length} files, every import points one way`)

function room(file) {
  const parts = relative(root, file).split('/')
  return parts.length > 1 ? parts[0] : undefined
}

function short(file) {
  return relative(root, file)
}

function cycles(edges) {
  const found = []
  const state = new Map()
  const path = []
  const visit = (file) => {
    if (state.get(file) === 'done') return
    if (state.get(file) === 'open') {
      found.push([...path.slice(path.indexOf(file)), file])
      return
    }
    state.set(file, 'open')
    path.push(file)
    for (const next of edges.get(file) ?? []) visit(next)
    path.pop()
    state.set(file, 'done')
  }
  for (const file of edges.keys()) visit(file)
  return found
}
