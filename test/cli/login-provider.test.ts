// The login of oidc-provider from the terminal, in a pseudo-terminal: its forms are filled in as a browser does.
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startBehindProvider, visit } from '../oauth/behind-provider.ts'
import { folder, rally } from './cli.ts'
import { KEYS, pageIn, Terminal } from './terminal.ts'

test('login, call, step-up in a call, refresh, whoami and logout', async () => {
  const { url, issuer, requests } = await startBehindProvider()
  const env = { XDG_CONFIG_HOME: await folder() }
  const login = new Terminal(['login', url, '--no-open'], env)
  await login.shows(/wants you to log in at/)
  expect(login.text).toContain('for read, offline_access')
  expect(await comeBack(await pageIn(login))).toContain('Go back to the terminal')
  expect(await login.ended).toBe(0)
  expect(login.text).toContain(`Logged in to ${url} at ${issuer}.`)
  expect(await rally(['call', url, 'read'], env)).toMatchObject({ code: 0, stdout: 'read by ada\n' })

  // The tool needs a scope that the login does not have: the call offers to log in again, and then goes on.
  const stronger = new Terminal(['call', url, 'write', '--no-open'], env)
  await stronger.answer('Log in\\?', KEYS.enter)
  expect(stronger.text).toContain('for read, write, offline_access')
  await comeBack(await pageIn(stronger))
  expect(await stronger.ended).toBe(0)
  expect(stronger.text).toContain('written by ada')

  // Without a terminal, a token that is not accepted any more is refreshed with what was saved.
  const files = join(env.XDG_CONFIG_HOME, 'mcp-rally/logins')
  const [name = ''] = await readdir(files)
  const file = join(files, name)
  const saved = JSON.parse(await readFile(file, 'utf8')) as { login: Record<string, unknown> }
  await writeFile(file, JSON.stringify({ ...saved, login: { ...saved.login, accessToken: 'withdrawn' } }))
  expect(await rally(['call', url, 'write'], env)).toMatchObject({ code: 0, stdout: 'written by ada\n' })
  expect(requests.filter((request) => request === 'POST /token')).toHaveLength(3)

  const shown = await rally(['whoami', url, '--json'], env)
  expect(JSON.parse(shown.stdout)).toMatchObject([{ server: url, user: 'ada', issuer, expires: 'when it is not used' }])
  expect(await rally(['logout', url], env)).toMatchObject({ code: 0, stderr: `Logged out of ${url}.\n` })
  expect(requests).toContain('POST /token/revocation')
  expect(await readdir(files)).toEqual([])
  expect(await rally(['call', url, 'read'], env)).toMatchObject({ code: 3, stdout: '' })
})

/** The user logs in and agrees, and the browser comes back to the terminal. Returns the page that it shows then. */
async function comeBack(page: URL): Promise<string> {
  const response = await fetch(await visit(page))
  return response.text()
}
