import { existsSync } from 'node:fs'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect } from 'mcp-rally/client'
import { describe, expect, test } from 'vitest'
import { LoginFiles } from '../../src/cli/logins.ts'
import { startDemo } from '../demo/demo-process.ts'
import { serveDemo, startServer } from './app.ts'
import { folder, jsonFile, rally, STARTED, thief } from './cli.ts'
import { Terminal } from './terminal.ts'

const PENDING = {
  version: 1,
  revision: '2026-07-28',
  method: 'tools/call',
  params: { name: 'sure' },
  requestState: 'state',
}

/** The text of a saved call, as somebody else might write it. */
function saved(server: object): string {
  return JSON.stringify({ rally: 1, server, pending: PENDING })
}

describe('a saved call', () => {
  test('waits at its first question, and is gone on with by another process', async () => {
    const { url } = await serveDemo()
    const path = join(await folder(), 'pending.json')
    const stopped = await rally(['call', url, 'deploy', 'env=prod', '--save', path, '--json'])
    expect(stopped).toMatchObject({ code: 4, stdout: '' })
    expect(stopped.stderr).toContain(`rally resume ${path}\n`)
    const [, sha] = /\(Deploy (\w{7}) to prod\?\)/.exec(stopped.stderr) ?? []

    const answers = await jsonFile({ confirm: { confirm: true } })
    const resumed = await rally(['resume', path, '--answers', answers])
    expect(resumed).toMatchObject({ code: 0, stdout: `Deployed ${sha} to prod\n` })
  })

  test('stops at each question that is not answered, and holds no secret of the caller', async () => {
    const { url } = await serveDemo()
    const path = join(await folder(), 'pending.json')
    const env = { RALLY_TOKEN: 'a-token' }
    await rally(['call', url, 'update_work_item', 'id=1', 'state=Resolved', '--save', path, '-H', 'X-Key: a-key'], env)
    const first = await jsonFile({ resolution: { resolution: 'Duplicate' } })
    const stopped = await rally(['resume', path, '--answers', first, '--save', path])
    expect(stopped.code).toBe(4)
    expect(stopped.stderr).toContain('The server asks "original"')
    const text = await readFile(path, 'utf8')
    expect(text).not.toMatch(/a-token|a-key/)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    const second = await jsonFile({ original: { duplicateOf: 3 } })
    const done = await rally(['resume', path, '--answers', second])
    expect(JSON.parse(done.stdout)).toMatchObject({ duplicateOf: 3 })
  })

  test('is gone on with at another address of the same server', async () => {
    const env = { RALLY_KEYS: 'a secret that the two of them share' }
    const [one, other] = await Promise.all([startDemo(env), startDemo(env)])
    const path = join(await folder(), 'pending.json')
    await rally(['call', one.url, 'deploy', 'env=prod', '--save', path])
    await one.child.kill()
    const answers = await jsonFile({ confirm: { confirm: true } })
    const { code, stdout, stderr } = await rally(['resume', path, other.url, '--answers', answers])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^Deployed \w{7} to prod\n$/)
    expect(stderr).toContain(`Resuming the tool "deploy" with ${other.url}\n`)
  })

  test('is resumed under the revision that it was saved under', async () => {
    const { url, shaky } = await startServer()
    shaky.heal()
    const client = await connect(url, { revision: '2026-06-XX', onElicit: () => ({ action: 'decline' }) })
    const { value: round } = await client.rounds({ tool: 'shaky' }).next()
    await client.close()
    const pending: unknown = round !== undefined && 'pending' in round ? round.pending : undefined
    const path = await jsonFile({ rally: 1, server: { url }, pending })
    const answers = await jsonFile({ sure: { confirm: true } })
    expect(await rally(['resume', path, '--answers', answers])).toMatchObject({ code: 0, stdout: 'It held.\n' })
  })

  test('is saved where it had come to when its server was lost, and the exit code tells of the loss', async () => {
    const { url, shaky } = await startServer()
    const path = join(await folder(), 'pending.json')
    const answers = await jsonFile({ sure: { confirm: true } })
    const { code, stdout, stderr } = await rally(['call', url, 'shaky', '--answers', answers, '--save', path])
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
    expect(stderr).toMatch(/The call was saved after its last round\. Resume it with: npx mcp-rally resume .*\nrally: /)
    shaky.heal()
    expect(await rally(['resume', path, '--answers', answers])).toMatchObject({ code: 0, stdout: 'It held.\n' })
  })

  test('of a server that is started is saved with its command, and one under a made-up key says that it is over', async () => {
    const path = join(await folder(), 'pending.json')
    await rally(['call', 'sure', '--save', path, ...STARTED])
    const answers = await jsonFile({ sure: { confirm: true } })
    const { code, stderr } = await rally(['resume', path, '--answers', answers, '--yes'])
    expect(code).toBe(3)
    expect(stderr).toContain('Invalid or expired requestState')
  })

  test.each([
    { what: 'no JSON', text: 'nothing', says: 'is not valid JSON' },
    { what: 'something else', text: '{"a":1}', says: 'is not a call that rally saved with --save.' },
    { what: 'of no server', text: saved({}), says: 'its server must have a url, or a command with args and a cwd.' },
    {
      what: 'of a server of another kind',
      text: saved({ url: 'file:///etc/passwd' }),
      says: 'begins with http: or https:',
    },
    {
      what: 'of a command without words',
      text: saved({ command: 'node', args: [1] }),
      says: 'must have a url, or a command',
    },
    {
      what: 'of a command that no system takes',
      text: saved({ command: 'a\0b' }),
      says: 'must have a url, or a command',
    },
    {
      what: 'of a command that nobody would read',
      text: saved({ command: 'node', args: ['a'.repeat(9_000)] }),
      says: 'its server must have at most 8192 characters.',
    },
    {
      what: 'damaged',
      text: '{"rally":1,"server":{"url":"http://127.0.0.1:9/mcp"},"pending":{"version":1}}',
      says: 'Cannot resume the pending call',
    },
  ])('that is $what is told so', async ({ text, says }) => {
    const path = join(await folder(), 'pending.json')
    await writeFile(path, text)
    const { code, stderr } = await rally(['resume', path])
    expect(code).toBe(2)
    expect(stderr).toContain(says)
  })
})

test('a file without end is read no further than the limit', async () => {
  const { code, stderr } = await rally(['resume', '/dev/zero'])
  expect({ code, stderr }).toEqual({ code: 2, stderr: 'rally: /dev/zero must have at most 33554432 bytes.\n' })
})

describe('a saved call of somebody else, without a terminal', () => {
  test('runs no command', async () => {
    const { path, mark } = await savedCommand()
    const { code, stdout, stderr } = await rally(['resume', path])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(
      /\nrally: To resume the tool "sure", rally must run \S+node -e 'require[^\n]* in \S+, as the file says, and there is no terminal to ask in\. If you trust the file, add --yes\.\n$/,
    )
    expect(existsSync(mark)).toBe(false)
    await rally(['resume', path, '--yes'])
    expect(existsSync(mark)).toBe(true)
  })

  test.each([
    { what: 'token', args: [], env: { RALLY_TOKEN: 'a-token' }, says: 'send your token (RALLY_TOKEN) to' },
    { what: 'header', args: ['-H', 'X-Key: a-key'], env: {}, says: 'send your headers (-H) to' },
    {
      what: 'token and header',
      args: ['-H', 'X-Key: a-key'],
      env: { RALLY_TOKEN: 'a-token' },
      says: 'send your token (RALLY_TOKEN) and your headers (-H) to',
    },
  ])('sends no $what to its address', async ({ args, env, says }) => {
    const { url, requests } = await thief()
    const path = join(await folder(), 'pending.json')
    await writeFile(path, saved({ url }))
    const { code, stderr } = await rally(['resume', path, ...args], env)
    expect(code).toBe(2)
    expect(stderr).toContain(`${says} ${url}, as the file says`)
    expect(requests).toEqual([])
    expect((await rally(['resume', path, ...args, '--yes'], env)).code).toBe(3)
    expect(JSON.stringify(requests)).toMatch(/a-token|a-key/)
  })

  test('sends no login to its address, and says which tool it calls there', async () => {
    const { url, requests } = await thief()
    const env = { XDG_CONFIG_HOME: await folder() }
    await new LoginFiles(env).set(url, { issuer: 'https://login.example.com', accessToken: 'stored-token' })
    const path = join(await folder(), 'pending.json')
    const { requestState: _, ...begun } = PENDING
    const pending = { ...begun, params: { name: 'delete_everything' }, inputRequests: {} }
    await writeFile(path, JSON.stringify({ rally: 1, server: { url }, pending }))
    const { code, stderr } = await rally(['resume', path], env)
    expect(code).toBe(2)
    expect(stderr).toContain(
      `To resume the tool "delete_everything", rally must send your login to ${url}, as the file says`,
    )
    expect(requests).toEqual([])
    const terminal = new Terminal(['resume', path], env)
    await terminal.answer('Do it\\?', 'n')
    expect(await terminal.ended).toBe(4)
    expect(terminal.text.replaceAll(/[\s│]+/g, ' ')).toContain(
      `"delete_everything", rally must send your login to ${url},`,
    )
    expect(requests).toEqual([])
    await rally(['resume', path, '--yes'], env)
    expect(JSON.stringify(requests)).toContain('Bearer stored-token')
  })

  test('sends what is no secret, and does not ask for a server that was typed', async () => {
    const { url, requests } = await thief()
    const path = join(await folder(), 'pending.json')
    await writeFile(path, saved({ url }))
    expect((await rally(['resume', path])).code).toBe(3)
    expect(requests.length).toBeGreaterThan(0)
    expect((await rally(['resume', path, url], { RALLY_TOKEN: 'a-token' })).code).toBe(3)
    expect(JSON.stringify(requests)).toMatch(/a-token/)
  })
})

/** A saved call whose command leaves a file behind. */
async function savedCommand(): Promise<{ path: string; mark: string }> {
  const inside = await folder()
  const mark = join(inside, 'was-run')
  const path = join(inside, 'pending.json')
  const script = `require('fs').writeFileSync(${JSON.stringify(mark)}, '')`
  await writeFile(path, saved({ command: process.execPath, args: ['-e', script], cwd: inside }))
  return { path, mark }
}
