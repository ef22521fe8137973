// What the drafts need is loaded with the first session, and an app that speaks them starts as fast as any other.
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const execute = promisify(execFile)
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const RECORDER = fileURLToPath(new URL('../package/loaded.mjs', import.meta.url))

const SERVER = `
  import { rally } from 'mcp-rally'
  const app = rally({ name: 'a', version: '1', revisions: ['2026-06-XX', '2026-02-03-draft'] })
  app.tool('one', {}, () => 'done')
  const called = await app.dispatch({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'one', _meta: {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  } } })
  if (called.status !== 200) throw new Error('The tool was not called.')
`

const SESSION = `
  const params = { protocolVersion: '2026-06-XX', capabilities: {}, clientInfo: { name: 'a', version: '1' } }
  const begun = await app.fetch(new Request('http://localhost/mcp', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
  }))
  if (begun.status !== 200) throw new Error('No session was begun.')
`

const CLIENT = `
  import { connect } from 'mcp-rally/client'
  const client = await connect(app)
  await client.callTool('one')
  await client.close()
`

/** Whether a program, in a fresh process, loads what spells the drafts. */
async function loadsDrafts(program: string): Promise<boolean> {
  const args = ['--import', RECORDER, '--input-type=module', '--eval', program]
  const { stderr } = await execute(process.execPath, args, { cwd: ROOT, timeout: 20_000 })
  const { imported } = JSON.parse(stderr) as { imported: string[] }
  const own = imported.filter((url) => url.startsWith('file:') && url.includes('/dist/'))
  const texts = await Promise.all(own.map((url) => readFile(fileURLToPath(url), 'utf8')))
  return texts.some((text) => text.includes('input_responses'))
}

test('An app that speaks drafts does not load them for a call in the release, nor does a client', async () => {
  expect(await loadsDrafts(SERVER)).toBe(false)
  expect(await loadsDrafts(SERVER + CLIENT)).toBe(false)
})

test('The first session loads them', async () => {
  expect(await loadsDrafts(SERVER + SESSION)).toBe(true)
})
