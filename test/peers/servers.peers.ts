// Our client and our terminal client with servers of others.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { ServerCommand } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { ROOT } from '../package/consumer.ts'
import { answering, freePort, killed } from '../runtimes/processes.ts'
import { programOf } from './programs.ts'
import { servers } from './table.ts'

type ServerName = (typeof servers)[number]['name']

const NODE = programOf('node24', 'bin/node')
const EVERYTHING = programOf('@modelcontextprotocol/server-everything', 'dist/index.js')
const FASTMCP = join(import.meta.dirname, 'servers/fastmcp.mjs')
const execute = promisify(execFile)

let folder = ''
/** The servers over HTTP have it one after the other. That of xmcp is a part of its programs. */
let port = 0

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rally-peers-'))
  await writeFile(join(folder, 'note.txt'), 'Hello, Ada')
  port = await freePort()
  await buildXmcp()
}, 180_000)
afterAll(() => rm(folder, { recursive: true }))

/** The arguments of Node for a server over stdio. */
const overStdio: Readonly<Record<ServerName, () => string[]>> = {
  'server-everything': () => [EVERYTHING, 'stdio'],
  'server-filesystem': () => [programOf('@modelcontextprotocol/server-filesystem', 'dist/index.js'), folder],
  'server-memory': () => [programOf('@modelcontextprotocol/server-memory', 'dist/index.js')],
  FastMCP: () => [FASTMCP],
  xmcp: () => [join(folder, 'xmcp/dist/stdio.js')],
}

/** The same for one that listens on the port, which is in its environment too. */
const overHttp: Readonly<Partial<Record<ServerName, () => string[]>>> = {
  'server-everything': () => [EVERYTHING, 'streamableHttp'],
  FastMCP: () => [FASTMCP, String(port)],
  xmcp: () => [join(folder, 'xmcp/dist/http.js')],
}

const rows = servers.flatMap(({ name, wires, call }) => wires.map((wire) => ({ name, wire, ...call })))

describe.each(rows)('$name over $wire', ({ name, wire, tool, args, text }) => {
  let address: string | ServerCommand = ''
  let child: ChildProcess | undefined

  beforeAll(async () => {
    const env = { MEMORY_FILE_PATH: join(folder, 'memory.json') }
    address = { command: NODE, args: overStdio[name](), cwd: folder, env }
    if (wire === 'stdio') return
    address = `http://127.0.0.1:${port}/mcp`
    child = spawn(NODE, overHttp[name]?.() ?? [], { cwd: folder, env: { ...process.env, PORT: String(port) } })
    await answering(address, 30_000)
  }, 60_000)
  afterAll(() => killed(child))

  test('lists its tools to our client, and answers its call', async () => {
    const client = await connect(address)
    onTestFinished(() => client.close())
    expect((await client.listTools()).map((each) => each.name)).toContain(tool)
    const { content } = await client.callTool(tool, inFolder(args))
    expect(content[0]).toMatchObject({ type: 'text', text: expect.stringContaining(text) })
  })

  test('is called from the terminal', async () => {
    const words = Object.entries(inFolder(args)).map(([key, value]) => `${key}=${value}`)
    expect(await inTerminal(address, 'tools')).toContain(tool)
    expect(await inTerminal(address, 'call', tool, ...words)).toContain(text)
  })
})

test('server-everything asks the user and the model through our client', async () => {
  const client = await connect(
    { command: NODE, args: [EVERYTHING, 'stdio'] },
    {
      onElicit: () => ({ action: 'accept', content: { name: 'Ada', check: true } }),
      onSample: () => ({ role: 'assistant', model: 'none', content: { type: 'text', text: 'Sampled for Ada' } }),
    },
  )
  onTestFinished(() => client.close())
  const asked = await client.callTool('trigger-elicitation-request', {})
  expect(JSON.stringify(asked.content)).toContain('- Name: Ada')
  const sampled = await client.callTool('trigger-sampling-request', { prompt: 'Ada?' })
  expect(JSON.stringify(sampled.content)).toContain('Sampled for Ada')
})

/** What our terminal client prints. The address comes first, or the command last. */
async function inTerminal(address: string | ServerCommand, verb: string, ...words: string[]): Promise<string> {
  const place =
    typeof address === 'string' ? [address, ...words] : [...words, '--', address.command, ...(address.args ?? [])]
  const env = { PATH: process.env['PATH'], MEMORY_FILE_PATH: join(folder, 'memory.json') }
  const program = [join(ROOT, 'dist/cli.js'), verb, ...place]
  return (await execute(process.execPath, program, { cwd: folder, env, timeout: 50_000 })).stdout
}

/** Paths of files are in the folder that the server may read. */
function inFolder(args: object): Record<string, string> {
  return Object.fromEntries(
    Object.entries(args).map(([key, value]) => [key, key === 'path' ? join(folder, String(value)) : String(value)]),
  )
}

const XMCP_TOOL = `
  import { z } from 'zod'
  export const schema = { name: z.string() }
  export const metadata = { name: 'greet', description: 'Greets' }
  export default ({ name }: { name: string }) => 'Hello, ' + name
`

/** An xmcp server is a folder of tools, which its own compiler makes into programs. */
async function buildXmcp(): Promise<void> {
  const project = join(folder, 'xmcp')
  await mkdir(join(project, 'src/tools'), { recursive: true })
  await symlink(join(import.meta.dirname, 'node_modules'), join(project, 'node_modules'))
  const paths = { tools: 'src/tools', prompts: false, resources: false }
  const config = { http: { host: '127.0.0.1', port }, stdio: true, paths }
  const files = {
    'src/tools/greet.ts': XMCP_TOOL,
    'xmcp.config.ts': `export default ${JSON.stringify(config)}`,
    'package.json': '{ "name": "xmcp-peer", "version": "1.0.0" }',
    'tsconfig.json':
      '{ "compilerOptions": { "module": "ESNext", "moduleResolution": "bundler", "skipLibCheck": true } }',
  }
  for (const [name, text] of Object.entries(files)) await writeFile(join(project, name), text)
  await execute(NODE, [programOf('xmcp', 'dist/cli.js'), 'build'], { cwd: project, timeout: 170_000 })
}
