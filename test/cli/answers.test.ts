import { pathToFileURL } from 'node:url'
import { describe, expect, test } from 'vitest'
import { serveDemo, startServer } from './app.ts'
import { jsonFile, rally } from './cli.ts'

describe('without a terminal', () => {
  test('the questions of several rounds are answered from a file, and --json prints the result and nothing else', async () => {
    const { url } = await serveDemo()
    const answers = await jsonFile({ resolution: { resolution: 'Duplicate' }, original: { duplicateOf: 7 } })
    const args = ['call', url, 'update_work_item', 'id=4522', 'state=Resolved', '--answers', answers]
    const [json, plain] = await Promise.all([rally([...args, '--json']), rally(args)])
    expect(json).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(json.stdout)).toMatchObject({
      resultType: 'complete',
      structuredContent: { id: 4522, state: 'Resolved', resolution: 'Duplicate', duplicateOf: 7 },
    })
    expect(JSON.parse(plain.stdout)).toEqual({ id: 4522, state: 'Resolved', resolution: 'Duplicate', duplicateOf: 7 })
    expect(plain.stderr).toBe(
      'Round 1: rally-demo asks 1 question.\nRound 2: rally-demo asks 1 question.\nRound 3: rally-demo is done.\n',
    )
  })

  test('an answer that is missing is named with its question, and what it would look like', async () => {
    const { url } = await serveDemo()
    const answers = await jsonFile({ resolution: { resolution: 'Duplicate' } })
    const args = ['call', url, 'update_work_item', 'id=1', 'state=Resolved', '--answers', answers, '--json']
    expect(await rally(args)).toEqual({
      code: 4,
      stdout: '',
      stderr: `rally: The server asks "original" (Which work item is 1 a duplicate of?), a form, and ${answers} has no answer to it.
An answer in a file for --answers looks like this: {"original": {"duplicateOf":1}}
`,
    })
  })

  test('and without a file a question cannot be answered', async () => {
    const { url } = await serveDemo()
    const { code, stderr } = await rally(['call', url, 'deploy', 'env=prod'])
    expect(code).toBe(4)
    expect(stderr).toContain('there is no terminal to ask in.')
  })

  test('an answer in the file that does not fit is wrong use, and is not sent', async () => {
    const { url } = await serveDemo()
    const answers = await jsonFile({ confirm: { confirm: 'yes' } })
    const { code, stderr } = await rally(['call', url, 'deploy', 'env=prod', '--answers', answers])
    expect(code).toBe(2)
    expect(stderr).toContain('The answer to "confirm" does not match its question: confirm must be true or false.')
  })

  test.each([
    { kind: 'a word', answer: 'decline' },
    { kind: 'a whole answer', answer: { action: 'cancel' } },
  ])('a question is declined by $kind, and then a failure has the exit code 4', async ({ answer }) => {
    const { url } = await serveDemo()
    const answers = await jsonFile({ confirm: answer })
    const { code, stdout } = await rally(['call', url, 'deploy', 'env=prod', '--answers', answers])
    expect(code).toBe(4)
    expect(stdout).toMatch(/The user \w+ the question "confirm"/)
  })

  test('a prompt, which has no result that tells of a decline, ends with 4 and the words of the server', async () => {
    const { url } = await startServer()
    const answers = await jsonFile({ how: 'decline' })
    const { code, stdout, stderr } = await rally(['prompt', url, 'greet', 'who=Ada', '--answers', answers, '--json'])
    expect({ code, stdout }).toEqual({ code: 4, stdout: '' })
    expect(stderr).toMatch(/^rally: The user declined the question "how"/)
  })

  test('a page to visit is shown, not opened', async () => {
    const { url } = await startServer()
    const answers = await jsonFile({ page: 'accept' })
    const args = ['call', url, 'visit', 'url=https://example.com/x', '--answers', answers]
    // With nothing on the path there is nothing to open it with.
    const { code, stdout, stderr } = await rally(args, { PATH: '' })
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'Signed in.\n' })
    expect(stderr).toContain('Visit this page: https://example.com/x\n')
  })

  test('a question to a model is answered from the file, and is not asked without one', async () => {
    const { url } = await serveDemo()
    const answers = await jsonFile({ summary: { role: 'assistant', content: { type: 'text', text: 'Short.' } } })
    const [given, missing] = await Promise.all([
      rally(['call', url, 'summarize', 'text=long', '--answers', answers]),
      rally(['call', url, 'summarize', 'text=long']),
    ])
    expect(given).toMatchObject({ code: 0, stdout: 'Short.\n' })
    expect(missing).toMatchObject({ code: 4, stdout: '' })
    expect(missing.stderr).toContain('rally has none. Put the answer of a model into the file for --answers.')
  })

  test('roots are those of --root', async () => {
    const { url } = await startServer()
    const [given, missing] = await Promise.all([
      rally(['call', url, 'folders', '--root', '/tmp/one', '--root', 'two']),
      rally(['call', url, 'folders']),
    ])
    expect(given.stdout).toBe(`file:///tmp/one ${pathToFileURL('two').href}\n`)
    expect(missing.code).toBe(4)
    expect(missing.stderr).toContain('Name them with --root <path>.')
  })
})
