// Typed calls as their users have them: the types cross a package boundary, and `rally types` writes them from running servers.
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Consumer, ROOT } from './consumer.ts'

const execute = promisify(execFile)

let consumer: Consumer
beforeAll(async () => {
  consumer = await Consumer.install(['zod'])
}, 60_000)
afterAll(() => consumer.remove())

/** What `rally types` prints for a server that is a program. */
async function typesOf(...command: readonly string[]): Promise<string> {
  const cli = join(consumer.folder, 'node_modules/mcp-rally/dist/cli.js')
  const { stdout } = await execute(process.execPath, [cli, 'types', '--', process.execPath, ...command])
  return stdout
}

describe('an app with 100 tools in one chain', () => {
  const numbers = Array.from({ length: 100 }, (_, index) => index)
  const SERVER = `
    import { rally } from 'mcp-rally'
    import { z } from 'zod'
    export const app = rally({ name: 'many', version: '1.0.0' })
      ${numbers.map((n) => `.tool('tool-${n}', { input: z.object({ in${n}: z.string(), count: z.number().optional() }), output: z.object({ out${n}: z.string() }) }, ({ in${n} }) => ({ out${n}: in${n} }))`).join('\n')}
  `
  const CLIENT = `
    import { connect } from 'mcp-rally/client'
    import type { app } from './server.js'
    export async function callAll(url: string): Promise<string[]> {
      const { tools } = await connect<typeof app>(url)
      return [${numbers.map((n) => `(await tools['tool-${n}']({ in${n}: 'x' })).out${n}`).join(', ')}]
    }
  `

  // Counts and not times, because the machine may be busy. Raise the limit on purpose.
  test('is checked by the compiler without many instantiations, and the client loads nothing of the server', async () => {
    await consumer.write({ 'server.ts': SERVER, 'client.ts': CLIENT })
    const printed = await consumer.measure(['client.ts'], BROWSER)
    const [, count] = /^Instantiations:\s+(\d+)$/m.exec(printed) ?? []
    const [, seconds] = /^Check time:\s+([\d.]+)s$/m.exec(printed) ?? []
    console.log(`100 tools, registered in a chain and called by name: ${count} instantiations, checked in ${seconds} s`)
    expect(printed).not.toContain('error TS')
    expect(Number(count)).toBeLessThan(400_000)
    expect(await readFile(join(consumer.folder, 'client.js'), 'utf8')).not.toContain('./server')
  })
})

describe('rally types', () => {
  test('writes types that compile, for servers of ours and of others, and for hostile ones', async () => {
    const written = {
      'official.d.ts': await typesOf(join(ROOT, 'test/interop/client-official-server.mjs'), '--stdio'),
      'own.d.ts': await typesOf(join(ROOT, 'test/cli/server.mjs')),
      'hostile.d.ts': await typesOf('--eval', HOSTILE_SERVER),
    }
    await consumer.write({ ...written, 'use.ts': USE })
    expect(await consumer.compile(['use.ts', ...Object.keys(written)], BROWSER)).toBe('')
    expect(written['hostile.d.ts']).not.toMatch(/^ *(evil|declare|\/\/\/|@ts-ignore)/m)
  })
})

/** Types of a platform, of which those of the client need some. */
const BROWSER = { lib: ['ES2023', 'DOM'], types: [] }

const USE = `
  import type { Client } from 'mcp-rally/client'
  import type { Server as Hostile } from './hostile.js'
  import type { Server as Official } from './official.js'
  import type { Server as Own } from './own.js'
  declare const hostile: Client<Hostile>
  declare const official: Client<Official>
  declare const own: Client<Own>
  export const names: (keyof typeof hostile.tools)[] = ['tree', '*/ evil() /*', '__proto__', 'constructor', 'a\\n"b', 'loops']
  export async function use(): Promise<unknown> {
    const tree = await hostile.tools.tree({ root: { label: 'a', children: [{ label: 'b' }] } })
    const depth: number = tree.depth
    // @ts-expect-error: a label is missing
    await hostile.tools.tree({ root: { children: [{}] } })
    const { content } = await own.tools.about()
    const { sum }: { sum: number } = await official.tools.add({ a: 1, b: 2 })
    // @ts-expect-error: a number is missing
    await official.tools.add({ a: 1 })
    // @ts-expect-error: there is no such tool
    official.tools.other
    return [depth, content, sum]
  }
`

/** Answers as a server of 2026-07-28 would, with whatever its schemas are. */
const HOSTILE_SERVER = `
  const node = { type: 'object', description: 'A node */ evil() /*', required: ['label'], properties: {
    label: { type: 'string' }, children: { type: 'array', items: { $ref: '#/$defs/node' } } } }
  const object = (properties) => ({ type: 'object', properties: JSON.parse(JSON.stringify(properties)) })
  let deep = {}
  for (let level = 0; level < 100; level += 1) deep = { type: 'array', items: deep }
  const wide = Object.fromEntries(Array.from({ length: 30 }, (_, n) => ['d' + n, { anyOf: [{ $ref: '#/$defs/d' + (n + 1) }, { $ref: '#/$defs/d' + (n + 2) }] }]))
  const tools = [
    { name: 'tree', title: 'Tree', description: 'Draws.\\n@ts-ignore\\n*/\\ndeclare const evil: 1\\n/// <reference path="x" />',
      inputSchema: { type: 'object', properties: { root: { $ref: '#/$defs/node' } }, required: ['root'], $defs: { node } },
      outputSchema: { type: 'object', properties: { depth: { type: 'integer' } }, required: ['depth'] } },
    { name: '*/ evil() /*', description: '\\u2028evil()\\u202e', inputSchema: object({ '"]: evil; x: ["': { enum: ['"; evil', '\\u2029', '\\ud800'] }, 'a\\u2028b': {} }) },
    { name: '__proto__', inputSchema: JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{}},"required":["toString"]}') },
    { name: 'constructor', inputSchema: object({ a: { enum: Array.from({ length: 5000 }, (_, n) => n) }, b: { const: { '*/': [1e21, -0.5] } } }) },
    { name: 'a\\n"b', inputSchema: object({ deep }) },
    { name: 'loops', inputSchema: { type: 'object', $defs: { self: { $ref: '#/$defs/self' }, a: { allOf: [{ $ref: '#/$defs/b' }] }, b: { anyOf: [{ $ref: '#/$defs/a' }, { type: 'string' }] }, ...wide },
      properties: { x: { $ref: '#' }, self: { $ref: '#/$defs/self' }, a: { $ref: '#/$defs/a' }, wide: { $ref: '#/$defs/d0' }, odd: { $ref: '#/properties/x/../..' }, not: 7, list: { type: 'array', items: 'x', prefixItems: 3 }, t: { type: ['array', 'object', 'nothing', 7] } } } },
    { name: '*/ evil() /*', inputSchema: { type: 'object' } },
  ]
  const results = {
    'server/discover': { supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, serverInfo: { name: 'x\\nevil()', version: '*/' } },
    'tools/list': { tools, ttlMs: 0, cacheScope: 'public' },
  }
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method } = JSON.parse(line)
    if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...results[method] } }))
  })
`
