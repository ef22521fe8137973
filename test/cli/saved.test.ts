import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startDemo } from '../demo/demo-process.ts'
import { serveDemo, startServer } from './app.ts'
import { folder, jsonFile, rally, STARTED } from './cli.ts'

describe('a saved call', () => {
  test('waits at its first question, and is gone on with by another process', async () => {
    const { url } = await serveDemo()
    const path = join(await folder(), 'pending.json')
    const saved = await rally(['call', url, 'deploy', 'env=prod', '--save', path, '--json'])
    expect(saved).toMatchObject({ code: 4, stdout: '' })
    expect(saved.stderr).toContain(`rally resume ${path}\n`)
    const [, sha] = /\(Deploy (\w{7}) to prod\?\)/.exec(saved.stderr) ?? []

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
    expect(stderr).toContain(`Resuming with ${other.url}\n`)
  })

  test('is saved where it had come to when its server was lost, and the exit code tells of the loss', async () => {
    const { url, shaky } = await startServer()
    const path = join(await folder(), 'pending.json')
    const answers = await jsonFile({ sure: { confirm: true } })
    const { code, stdout, stderr } = await rally(['call', url, 'shaky', '--answers', answers, '--save', path])
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
    expect(stderr).toMatch(/The call was saved after its last round\. Resume it with: rally resume .*\nrally: /)
    shaky.heal()
    expect(await rally(['resume', path, '--answers', answers])).toMatchObject({ code: 0, stdout: 'It held.\n' })
  })

  test('of a server that is started is saved with its command, and one under a made-up key says that it is over', async () => {
    const path = join(await folder(), 'pending.json')
    await rally(['call', 'sure', '--save', path, ...STARTED])
    const answers = await jsonFile({ sure: { confirm: true } })
    const { code, stderr } = await rally(['resume', path, '--answers', answers])
    expect(code).toBe(3)
    expect(stderr).toContain('Invalid or expired requestState')
  })

  test.each([
    { what: 'no JSON', text: 'nothing', says: 'is not valid JSON' },
    { what: 'something else', text: '{"a":1}', says: 'is not a call that rally saved with --save.' },
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
