import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readConfig } from './config.ts'

const url = 'https://mcp.example.com/mcp'
// oxlint-disable no-template-curly-in-string -- the files are full of them
const remote = { type: 'http', url, headers: { 'X-Key': '${env:KEY}', 'X-Other': '${OTHER:-none}' } }
const local = { command: 'npx', args: ['-y', '${KEY}', 3], env: { TOKEN: 'a ${KEY}' }, cwd: '/srv' }

test.each([
  ['Claude and Cursor', JSON.stringify({ mcpServers: { remote, local } })],
  [
    'VS Code',
    `// A comment, and "quotes"\n{ "servers": { "remote": ${JSON.stringify(remote)}, /* // */ "local": ${JSON.stringify(local)}, }, }`,
  ],
  ['the settings of VS Code', JSON.stringify({ mcp: { servers: { remote, local } } })],
])('reads the servers of %s', async (_what, text) => {
  const path = await write(text)
  expect(await readConfig(path, 'remote', { KEY: 'k' })).toEqual({
    server: { url, headers: { 'X-Key': 'k', 'X-Other': 'none' } },
    written: { url, headers: remote.headers },
    variables: ['KEY'],
  })
  expect(await readConfig(path, 'local', { KEY: 'k' })).toEqual({
    server: { command: 'npx', args: ['-y', 'k', '3'], env: { TOKEN: 'a k' }, cwd: '/srv' },
    written: { ...local, args: ['-y', '${KEY}', '3'] },
    variables: ['KEY'],
  })
})

test.each([
  { file: '{', says: 'it is not JSON' },
  { file: '{}', says: 'it has neither mcpServers nor servers' },
  { file: '{"mcpServers":{"other":{}}}', says: 'there is no server "mine". It has other' },
  { file: '{"mcpServers":{"__proto__":{}}}', says: 'there is no server "mine"' },
  { file: '{"mcpServers":{"mine":{}}}', says: 'must have a command or a url' },
  { file: '{"mcpServers":{"mine":{"url":"file:///etc"}}}', says: 'must have a url that begins with http: or https:' },
  {
    file: '{"mcpServers":{"mine":{"command":"x","args":["${MISSING}"]}}}',
    says: 'there is no variable with that name',
  },
  { file: '{"mcpServers":{"mine":{"command":"x","args":[{}]}}}', says: 'args must contain strings' },
  { file: '{"servers":{"mine":{"command":"x","args":["${input:key}"]}}}', says: 'which rally cannot fill in' },
  { file: '{"servers":{"mine":{"type":"sse","url":"http://x"}}}', says: 'which rally does not support' },
])('refuses $file', async ({ file, says }) => {
  await expect(readConfig(await write(file), 'mine', {})).rejects.toThrow(says)
})

test('a text that looks like a comment stays as it is', async () => {
  const path = await write('{"mcpServers":{"mine":{"command":"x","args":["// no", "/* no */", "a,]"]}}}')
  expect(await readConfig(path, 'mine', {})).toMatchObject({ server: { args: ['// no', '/* no */', 'a,]'] } })
})

async function write(text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'rally-config-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const path = join(folder, 'mcp.json')
  await writeFile(path, text)
  return path
}
