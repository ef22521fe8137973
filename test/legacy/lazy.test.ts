// What serves older clients is loaded when the first of them comes, and not before.
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const execute = promisify(execFile)
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const RECORDER = fileURLToPath(new URL('../package/loaded.mjs', import.meta.url))

const PROGRAM = `
  import { rally } from 'mcp-rally'
  const app = rally({ name: 'a', version: '1' })
  app.tool('one', {}, () => 'done')
  const post = (message, headers) => app.fetch(new Request('http://localhost/mcp', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
  }))
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const headers = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'one' }
  const called = await post({ method: 'tools/call', params: { name: 'one', _meta } }, headers)
  if (called.status !== 200) throw new Error('The tool was not called.')
  app.drain()
`

const HANDSHAKE = `
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a', version: '1' } }
  const begun = await post({ method: 'initialize', params }, {})
  if (begun.status !== 200) throw new Error('No session was begun.')
`

/** Whether a program, in a fresh process, loads what serves older clients. */
async function loadsLegacy(program: string): Promise<boolean> {
  const args = ['--import', RECORDER, '--input-type=module', '--eval', program]
  const { stderr } = await execute(process.execPath, args, { cwd: ROOT, timeout: 20_000 })
  const { imported } = JSON.parse(stderr) as { imported: string[] }
  const own = imported.filter((url) => url.startsWith('file:') && url.includes('/dist/'))
  const texts = await Promise.all(own.map((url) => readFile(fileURLToPath(url), 'utf8')))
  return texts.some((text) => /class LegacyServer|LegacyServer = class/.test(text))
}

test('An app that is called by clients of 2026-07-28 alone never loads what serves older ones', async () => {
  expect(await loadsLegacy(PROGRAM)).toBe(false)
})

test('The first older client loads it', async () => {
  expect(await loadsLegacy(PROGRAM + HANDSHAKE)).toBe(true)
})
