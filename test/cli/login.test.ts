// Logging in from the terminal: in a pseudo-terminal, against real servers, with a browser that is a fetch.
import { existsSync } from 'node:fs'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { LoginFiles } from '../../src/cli/logins.ts'
import { agree, startProtected } from '../oauth/resource-server.ts'
import { folder, jsonFile, rally, thief } from './cli.ts'
import { KEYS, pageIn, Terminal } from './terminal.ts'

test('login, whoami, call, step up, logout', async () => {
  const { url, auth } = await startProtected()
  const env = { XDG_CONFIG_HOME: await folder() }
  const terminal = new Terminal(['login', url, '--no-open'], env)
  await terminal.shows(/wants you to log in at/)
  // The browser follows the redirect to the terminal.
  const response = await fetch(await pageIn(terminal))
  expect(await response.text()).toContain('Go back to the terminal')
  expect(await terminal.ended).toBe(0)
  expect(terminal.text).toContain(`Logged in to ${url} at ${auth.url}.`)

  const files = join(env.XDG_CONFIG_HOME, 'mcp-rally/logins')
  const [name = ''] = await readdir(files)
  expect((await stat(join(files, name))).mode & 0o777).toBe(0o600)
  expect((await stat(files)).mode & 0o777).toBe(0o700)
  const { login } = JSON.parse(await readFile(join(files, name), 'utf8')) as { login: Record<string, string> }

  const shown = await rally(['whoami', url, '--json'], env)
  expect(JSON.parse(shown.stdout)).toEqual([
    { server: url, user: 'ada', issuer: auth.url, scopes: ['read'], expires: 'when it is not used' },
  ])
  const table = await rally(['whoami'], env)
  expect(table.stdout).toMatch(/^SERVER +USER +LOGIN +SCOPES +EXPIRES\n/)

  const called = await rally(['call', url, 'read'], env)
  expect(called).toMatchObject({ code: 0, stdout: 'read by read\n' })

  const stronger = new Terminal(['login', url, '--no-open', '--scope', 'write'], env)
  await fetch(await pageIn(stronger))
  expect(await stronger.ended).toBe(0)
  expect(await rally(['call', url, 'write'], env)).toMatchObject({ code: 0, stdout: 'written\n' })
  expect(auth.to('/authorize').map((params) => params.get('scope'))).toEqual(['read', 'write read'])
  expect(auth.to('/register')).toHaveLength(1)

  const printed = [terminal.raw, stronger.raw, shown.stdout, shown.stderr, table.stdout, called.stderr].join('\n')
  for (const secret of [login['accessToken'], login['refreshToken']]) expect(printed).not.toContain(secret)

  expect((await rally(['logout', url], env)).stderr).toBe(`Logged out of ${url}.\n`)
  expect(auth.to('/revoke')).toHaveLength(1)
  expect(await readdir(files)).toEqual([])
  const refused = await rally(['call', url, 'read'], env)
  expect(refused.code).toBe(3)
  expect(refused.stderr).toContain('rally login <server>')
})

test('the address that a browser on another machine ends at can be pasted', async () => {
  const { url } = await startProtected()
  const terminal = new Terminal(['call', url, 'read', '--no-open'], { XDG_CONFIG_HOME: await folder() })
  await terminal.answer('Log in\\?', KEYS.enter)
  const address = await agree(await pageIn(terminal))
  terminal.type(`http://127.0.0.1:1/elsewhere?code=x${KEYS.enter}`)
  await terminal.shows(/It must begin with http:\/\/127\.0\.0\.1:\d+\/callback/)
  terminal.type(`${'\u007F'.repeat(40)}${address}${KEYS.enter}`)
  expect(await terminal.ended).toBe(0)
  expect(terminal.text).toContain('read by read')
})

test.each([
  { what: 'no', keys: 'n', code: 4, says: 'You did not log in' },
  { what: 'Ctrl-C', keys: KEYS.ctrlC, code: 130, says: 'Stopped' },
])('an answer of $what ends the call without a login', async ({ keys, code, says }) => {
  const { url, auth } = await startProtected()
  const terminal = new Terminal(['call', url, 'read'], { XDG_CONFIG_HOME: await folder() })
  await terminal.answer('Log in\\?', keys)
  expect(await terminal.ended).toBe(code)
  expect(terminal.text).toContain(says)
  expect(auth.to('/token')).toEqual([])
})

describe('--config', () => {
  test('takes a server by its name, and asks before it runs a command', async () => {
    const { url, auth } = await startProtected()
    const path = join(await folder(), 'mcp.json')
    const ran = join(path, '../ran')
    const server = { command: 'touch', args: [ran], env: { NODE_OPTIONS: '--inspect' } }
    // oxlint-disable-next-line no-template-curly-in-string -- the file is full of them
    const remote = { type: 'http', url, headers: { Authorization: 'Bearer ${env:MINE}' } }
    await writeFile(path, JSON.stringify({ mcpServers: { mine: server, remote } }))
    const env = { MINE: auth.tokenFor(url, 'read') }
    const called = await rally(['call', '--config', path, 'remote', 'read', '--yes'], env)
    expect(called).toMatchObject({ code: 0, stdout: 'read by read\n' })
    const refused = await rally(['tools', 'mine', '--config', path])
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toMatch(
      /To use the server mine, rally must run touch .* with the variables NODE_OPTIONS, as the/,
    )
    const terminal = new Terminal(['tools', 'mine', '--config', path])
    await terminal.answer('Do it\\?', 'n')
    expect(await terminal.ended).toBe(4)
    expect(existsSync(ran)).toBe(false)
    expect((await rally(['tools', 'mine', '--config', path, '--yes'])).code).toBe(3)
    expect(existsSync(ran)).toBe(true)
  })

  // oxlint-disable no-template-curly-in-string -- the file is full of them
  test.each([
    {
      what: 'variable in its address',
      server: { url: '/${MY_SECRET}?also=${env:OTHER}' },
      says: 'send your variables MY_SECRET, OTHER to @/${MY_SECRET}?also=${env:OTHER},',
      got: '/mcp/s3cret?also=other',
    },
    {
      what: 'variable in a header',
      server: { url: '', headers: { 'x-leak': '${MY_SECRET:-none}' } },
      says: 'send your variable MY_SECRET and the headers x-leak of the file to @,',
      got: 's3cret',
    },
    {
      what: 'header',
      server: { url: '', headers: { 'x-key': 'k' } },
      says: 'send the headers x-key of the file to @,',
      got: 'x-key',
    },
  ])('asks before it sends a $what, and never shows a value', async ({ server, says, got }) => {
    const { url, requests } = await thief()
    const env = { MY_SECRET: 's3cret', OTHER: 'other' }
    const path = await jsonFile({ mcpServers: { mine: { ...server, url: `${url}${server.url}` } } })
    const { code, stderr } = await rally(['tools', 'mine', '--config', path], env)
    expect(code).toBe(2)
    expect(stderr).toContain(`rally: To use the server mine, rally must ${says.replace('@', url)} as the file says`)
    expect(stderr).not.toContain('s3cret')
    expect(requests).toEqual([])
    await rally(['tools', 'mine', '--config', path, '--yes'], env)
    expect(JSON.stringify(requests)).toContain(got)
  })

  test.each([
    { what: 'of a command', server: { command: 'true', args: ['--key', '${MY_SECRET}'] }, says: "'${MY_SECRET}'" },
    { what: 'in a host', server: { url: 'https://\u0430${MY_SECRET}.com/' }, says: 'variable MY_SECRET to https://' },
    { what: 'that is an address', server: { url: '${MY_URL}/a' }, says: 'variable MY_URL to ${MY_URL}/a,' },
    { what: 'that is not an address', server: { url: '${MY_SECRET}' }, says: 'got "${MY_SECRET}"' },
  ])('does not show the value of a variable $what', async ({ server, says }) => {
    const path = await jsonFile({ mcpServers: { mine: server } })
    const env = { MY_SECRET: 's3cret', MY_URL: 'http://127.0.0.1:9/s3cret' }
    const { code, stderr } = await rally(['tools', 'mine', '--config', path], env)
    expect(code).toBe(2)
    expect(stderr).toContain(says)
    expect(stderr).not.toMatch(/s3cret|\u0430/)
  })

  test('asks before it sends a login, and not if there is nothing to send', async () => {
    const { url, requests } = await thief()
    const env = { XDG_CONFIG_HOME: await folder() }
    const path = await jsonFile({ mcpServers: { mine: { url } } })
    expect((await rally(['tools', 'mine', '--config', path], env)).code).toBe(3)
    expect(requests.length).toBeGreaterThan(0)
    await new LoginFiles(env).set(url, { issuer: 'https://login.example.com', accessToken: 'stored-token' })
    const { code, stderr } = await rally(['tools', 'mine', '--config', path], env)
    expect(code).toBe(2)
    expect(stderr).toContain(`rally must send your login to ${url}, as the file says`)
    expect(JSON.stringify(requests)).not.toContain('stored-token')
  })
})
