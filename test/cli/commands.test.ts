import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { shell, startDemo } from '../demo/demo-process.ts'
import { serveDemo, startServer } from './app.ts'
import { CLI, jsonFile, rally, start, STARTED } from './cli.ts'

describe('arguments', () => {
  test('become what the input schema of the tool asks for', async () => {
    const { url } = await startServer()
    const pairs = [
      'text=12',
      'whole=12',
      'number=1.5',
      'flag=true',
      'list=1',
      'list=2',
      'object={"a":[]}',
      'other:=null',
    ]
    const { code, stdout } = await rally(['call', url, 'echo', ...pairs])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({
      text: '12',
      whole: 12,
      number: 1.5,
      flag: true,
      list: [1, 2],
      object: { a: [] },
      other: null,
    })
  })

  test('are taken from --args too, and key=value goes before them', async () => {
    const { url } = await startServer()
    const { stdout } = await rally(['call', url, 'echo', 'whole=2', '--args', '{"whole":1,"text":"t"}'])
    expect(JSON.parse(stdout)).toEqual({ whole: 2, text: 't' })
  })
})

describe('a server that is started by a command', () => {
  test('is given its arguments, the variables that are named, and nothing else of ours', async () => {
    const env = { PASSED: 'on', SECRET: 'ours', RALLY_TOKEN: 'a-token' }
    const { code, stdout } = await rally(
      ['call', 'about', '-e', 'GIVEN=a=b', '-e', 'PASSED', ...STARTED, '--flag', '--'],
      env,
    )
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({ args: ['--flag', '--'], GIVEN: 'a=b', PASSED: 'on' })
  })

  test('and ends before it has answered is told of with its last words', async () => {
    const program = 'console.error("no licence"); process.exit(3)'
    const { code, stderr } = await rally(['tools', '--', process.execPath, '-e', program])
    expect(code).toBe(3)
    expect(stderr).toMatch(/exited with code 3\. Its stderr ends with:\nno licence/)
  })
})

describe('a list', () => {
  test('of tools is a table, and JSON for scripts', async () => {
    const { url } = await serveDemo()
    const [table, json] = await Promise.all([rally(['tools', url]), rally(['tools', url, '--json'])])
    const [headings, deploy, update] = table.stdout.split('\n')
    expect(headings).toMatch(/^NAME +ARGUMENTS +DESCRIPTION$/)
    expect(deploy).toMatch(/^deploy +env=string +Deploy a service/)
    expect(update).toMatch(/^update_work_item +id=integer state=Active\|Resolved\|Closed +Set the state/)
    expect((JSON.parse(json.stdout) as { name: string }[]).map(({ name }) => name)).toContain('trip')
  })

  test('of prompts and resources too', async () => {
    const { url } = await startServer()
    const [prompts, resources] = await Promise.all([rally(['prompts', url]), rally(['resources', url])])
    expect(prompts.stdout).toMatch(/^greet +who=\.\.\.$/m)
    expect(resources.stdout).toMatch(/^note:\/\/one +one +text\/plain$/m)
  })

  test('of nothing says so, and gives none to a script', async () => {
    const { url } = await serveDemo()
    const [said, json] = await Promise.all([rally(['prompts', url]), rally(['resources', url, '--json'])])
    expect(said).toEqual({ code: 0, stdout: '', stderr: 'There are none.\n' })
    expect(JSON.parse(json.stdout)).toEqual({ resources: [], resourceTemplates: [] })
  })
})

test('a prompt is got with its questions answered', async () => {
  const { url } = await startServer()
  const answers = await jsonFile({ how: { how: 'Hello' } })
  const { code, stdout } = await rally(['prompt', url, 'greet', 'who=Ada', '--answers', answers])
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'user: Hello, Ada!\n' })
})

test('a resource is read as its text, and as its bytes where it has no text', async () => {
  const { url } = await startServer()
  expect(await rally(['read', url, 'note://one'])).toMatchObject({ code: 0, stdout: 'The note.\n' })
  const { code, stdout } = await start(['read', url, 'note://bytes']).ended
  expect({ code, bytes: [...stdout] }).toEqual({ code: 0, bytes: [0, 255, 27] })
})

test('headers and the token go along, and a header of that name goes before the token', async () => {
  const { url, headers } = await startServer()
  await rally(['tools', url, '-H', 'X-Tenant: a: b'], { RALLY_TOKEN: 'secret' })
  expect(headers()).toMatchObject({ authorization: 'Bearer secret', 'x-tenant': 'a: b' })
  await rally(['tools', url, '-H', 'AUTHORIZATION: Basic x'], { RALLY_TOKEN: 'secret' })
  expect(headers()['authorization']).toBe('Basic x')
})

describe('the exit code', () => {
  test('is 1 where the tool says that it failed, and its words are the result', async () => {
    const { url } = await startServer()
    expect(await rally(['call', url, 'fails'])).toEqual({
      code: 1,
      stdout: 'It is broken.\n',
      stderr: 'tested reports that the call failed.\n',
    })
  })

  test.each([
    { args: [], says: 'Usage: npx mcp-rally' },
    { args: ['cal'], says: "unknown command 'cal'\n(Did you mean call?)\nSee npx mcp-rally --help.\n" },
    { args: ['call'], says: 'rally: Which server? Give a URL first, or the command that starts it after --.\n' },
  ])('is 2 for $args', async ({ args, says }) => {
    const { code, stdout, stderr } = await rally(args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(says)
  })

  test.each([
    { args: ['nothing'], says: 'rally-demo has no tool "nothing". It has: deploy, update_work_item' },
    { args: ['long_sum', 'n=many'], says: 'n takes a whole number, not "many".' },
    { args: ['deploy', 'prod'], says: '"prod" is not an argument. Write key=value' },
  ])('is 2 for a call of $args', async ({ args, says }) => {
    const { url } = await serveDemo()
    const { code, stderr } = await rally(['call', url, ...args])
    expect(code).toBe(2)
    expect(stderr).toContain(says)
  })

  test('is 3 where nobody listens, in a sentence and without a stack', async () => {
    const { code, stderr } = await rally(['tools', 'http://127.0.0.1:9/mcp'])
    expect(code).toBe(3)
    expect(stderr).toMatch(/^rally: Cannot reach the server: [^\n]*\. Nothing was sent\.\n$/)
  })

  test('is 3 where the server refuses the caller, and what to give is said', async () => {
    const { code, stderr } = await rally(['tools', await refusing(401)])
    expect(code).toBe(3)
    expect(stderr).toContain('set a token in RALLY_TOKEN')
    expect(stderr).not.toMatch(/^ +at /m)
  })

  test('is 3 where the server is none of this protocol; RALLY_DEBUG=1 shows the stack', async () => {
    const { code, stderr } = await rally(['tools', await refusing(200)], { RALLY_DEBUG: '1' })
    expect(code).toBe(3)
    expect(stderr).toMatch(/^ +at /m)
  })

  test('is 130 where it is interrupted, and the call is cancelled on the server', async () => {
    const { url, slow } = await startServer()
    const child = start(['call', url, 'slow'])
    await slow.begun
    child.interrupt()
    await slow.stopped
    const { code, stderr } = await child.ended
    expect({ code, stderr: stderr.toString() }).toEqual({ code: 130, stderr: 'Stopped.\n' })
  })

  test('is 0 for help and the version, which go to the standard output', async () => {
    const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string
    }
    expect(await rally(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
    const { code, stdout } = await rally(['--help'])
    expect(code).toBe(0)
    expect(stdout).toContain('npx mcp-rally call deploy env=prod -- node server.js --stdio')
  })

  // The bin is not on the path, and another package on npm is called rally.
  test.each([[[]], [['tasks']], [['types']], [['dev']]])(
    'is 0 for the help of %j, whose commands can be typed as they are',
    async (command) => {
      const { code, stdout } = await rally([...command, '--help'])
      expect(code).toBe(0)
      expect(stdout).toMatch(/^Usage: npx mcp-rally /)
      expect(stdout).not.toMatch(/^\s+rally /m)
    },
  )
})

test('whoever reads the result may stop before its end', async () => {
  const { url } = await startDemo()
  const piped = `"${process.execPath}" "${CLI}" tools ${url} 2>&1 >&4 | cat >&3`
  expect(await shell(`{ { ${piped}; } 4>&1 | true; } 3>&1`)).toBe('')
})

/** Not ours: it gives every request the same status and some text. */
async function refusing(status: number): Promise<string> {
  const server = createServer((_request, response) => response.writeHead(status).end('<html>'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
}
