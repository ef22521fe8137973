// Clients of others with our server, and gateways of others between our client and our server.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { CallToolResult, ClientOptions, FormAnswer, ServerAddress } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { answering, freePort, killed } from '../runtimes/processes.ts'
import { programOf } from './programs.ts'
import { clients } from './table.ts'

const NODE = programOf('node24', 'bin/node')
const SERVER = join(import.meta.dirname, 'server.mjs')
const onElicit = (): FormAnswer => ({ action: 'accept', content: { confirm: true } })

let server: ChildProcess
let folder = ''
let url = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rally-peers-'))
  const port = await freePort()
  url = `http://127.0.0.1:${port}/mcp`
  server = spawn(NODE, [SERVER, String(port)], { stdio: 'inherit' })
  await answering(url, 30_000)
}, 60_000)
afterAll(async () => {
  await killed(server)
  await rm(folder, { recursive: true })
})

describe.each(clients)('$name', ({ file, asks }) => {
  test.each(['HTTP', 'stdio'])('lists and calls the tools of our server over %s', async (wire) => {
    const program = join(import.meta.dirname, 'clients', file)
    const target = wire === 'HTTP' ? ['--url', url] : [NODE, SERVER]
    const env = { PATH: process.env['PATH'], HOME: folder }
    const { stdout } = await promisify(execFile)(NODE, [program, ...target], { env, timeout: 55_000 })
    const deployed = asks ? 'Deployed' : expect.stringContaining('Use an app that supports MCP elicitation')
    expect(JSON.parse(stdout.slice(stdout.lastIndexOf('\n{') + 1))).toEqual({
      tools: ['deploy', 'greet'],
      texts: ['Hello, Ada', deployed],
    })
  })
})

describe('mcp-remote', () => {
  test.each(['2026-07-28', '2025-11-25'])('carries our client to our server in revision %s', async (revision) => {
    const args = [programOf('mcp-remote', 'dist/proxy.js'), url]
    const env = { MCP_REMOTE_CONFIG_DIR: join(folder, 'mcp-remote') }
    expect(await callBoth({ command: NODE, args, env }, { revision })).toEqual(['Hello, Ada', 'Deployed'])
  })
})

describe('supergateway', () => {
  const GATEWAY = programOf('supergateway', 'dist/index.js')

  test.each(['2026-07-28', '2025-11-25'])('serves our stdio server over HTTP in revision %s', async (revision) => {
    const port = await freePort()
    const options = ['--outputTransport', 'streamableHttp', '--stateful', '--port', String(port), '--logLevel', 'none']
    const gateway = spawn(NODE, [GATEWAY, '--stdio', `${NODE} ${SERVER}`, ...options])
    onTestFinished(() => killed(gateway))
    await answering(`http://127.0.0.1:${port}/mcp`, 30_000)
    const texts = await callBoth(`http://127.0.0.1:${port}/mcp`, { revision })
    expect(texts).toEqual(['Hello, Ada', 'Deployed'])
  })

  /** It forwards no question of the server, and no message before `initialize`. */
  test('carries a plain call of our client to our server over HTTP', async () => {
    const args = [GATEWAY, '--streamableHttp', url, '--logLevel', 'none']
    const client = await connect({ command: NODE, args }, { revision: '2025-11-25' })
    onTestFinished(() => client.close())
    expect(textOf(await client.callTool('greet', { name: 'Ada' }))).toBe('Hello, Ada')
  })
})

async function callBoth(target: ServerAddress, options: ClientOptions): Promise<unknown[]> {
  const client = await connect(target, { ...options, onElicit })
  onTestFinished(() => client.close())
  return [textOf(await client.callTool('greet', { name: 'Ada' })), textOf(await client.callTool('deploy', {}))]
}

function textOf({ content: [block] }: CallToolResult): unknown {
  return block?.type === 'text' ? block.text : block
}
