// The terminal client against servers of 2025, which ask in the middle of a call.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listen } from '../client/legacy-server.mjs'
import { jsonFile, rally } from './cli.ts'
import { KEYS, Terminal } from './terminal.ts'

const { enter, down, escape } = KEYS

const STARTED = ['--', process.execPath, fileURLToPath(new URL('../client/legacy-server.mjs', import.meta.url)), 'v1']

let [v1, v2] = ['', '']
const closing: (() => Promise<void>)[] = []
beforeAll(async () => {
  const servers = await Promise.all([listen('v1'), listen('v2')])
  ;[v1, v2] = servers.map(({ url }) => url) as [string, string]
  closing.push(...servers.map(({ close }) => close))
})
afterAll(() => Promise.all(closing.map((close) => close())))

const SAMPLE = { role: 'assistant', content: { type: 'text', text: 'Short.' } }

describe('with a file', () => {
  test.each([
    {
      tool: 'deploy',
      typed: ['env=prod'],
      answers: { 'Deploy to prod?': { confirm: true } },
      says: 'Deployed to prod: true',
    },
    { tool: 'summarize', typed: [], answers: { sample: SAMPLE }, says: 'answers: Short.' },
    { tool: 'workspace', typed: ['--root', '/tmp'], answers: {}, says: 'file:///tmp' },
    {
      tool: 'survey',
      typed: [],
      answers: { 'Your name?': { name: 'Ada' }, 'How old, Ada?': { age: 36 } },
      says: 'Ada is 36.',
    },
  ])('the questions of $tool are answered by their texts', async ({ tool, typed, answers, says }) => {
    const file = await jsonFile(answers)
    const { code, stdout } = await rally(['call', v2, tool, ...typed, '--answers', file, '--json'])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ content: [{ text: says }] })
  })

  test('a question without an answer ends the call, and says how to answer it', async () => {
    const file = await jsonFile({ 'Your name?': { name: 'Ada' } })
    const { code, stderr } = await rally(['call', 'survey', '--answers', file, ...STARTED])
    expect(code).toBe(4)
    expect(stderr).toContain(`The server asks "How old, Ada?", a form, and ${file} has no answer to it.`)
    expect(stderr).toContain('looks like this: {"How old, Ada?": {"age":0}}')
    expect(stderr).not.toMatch(/connect\(\)|onElicit/)
  })

  test('a call that is to be saved is not, and the user reads why', async () => {
    const { code, stderr } = await rally(['call', v1, 'deploy', 'env=prod', '--save', await jsonFile({})])
    expect(code).toBe(4)
    expect(stderr).toMatch(/^--save has no effect: official v1 uses revision 2025-11-25,/m)
    expect(stderr).toMatch(/The server asks "Deploy to prod\?", a form, and there is no terminal to ask in\./)
  })
})

describe('in a terminal', () => {
  test('forms, pages and a model are answered by the person, one after the other', async () => {
    const survey = new Terminal(['call', v1, 'survey'])
    await survey.shows(/Your name\?/)
    await survey.answer('name', `Ada${enter}`)
    await survey.answer('age', `36${enter}`)
    expect(await survey.ended).toBe(0)
    expect(survey.text).toMatch(/official v1 asks a question\.[^]*Ada is 36\./)
    const visit = new Terminal(['call', v1, 'sign_in', '--no-open'])
    await visit.shows(/https:\/\/pages\.example\/in[^]*on the host pages\.example/)
    await visit.answer('Visit it', enter)
    expect(await visit.ended).toBe(0)
    expect(visit.text).toContain('The user said accept.')
    const model = new Terminal(['call', 'summarize', ...STARTED])
    await model.shows(/asks a model, and rally has none[^]*user: Sum it up\./)
    await model.answer('Answer of the model', `Short.${enter}`)
    expect(await model.ended).toBe(0)
    expect(model.text).toContain('a person with rally: Short.')
  })

  test('several questions at once are asked one at a time', async () => {
    const terminal = new Terminal(['call', v2, 'trip', '--root', '/tmp'])
    await terminal.shows(/Where to\?/)
    await terminal.answer('to', `sea${enter}`)
    await terminal.answer('Answer of the model', `Short.${enter}`)
    expect(await terminal.ended).toBe(0)
    expect(terminal.text).toContain('sea, Short., 1')
  })

  test('a question that is declined is a result of the tool', async () => {
    const terminal = new Terminal(['call', v1, 'deploy', 'env=prod'])
    await terminal.answer('confirm', escape)
    await terminal.answer('Leave the question', down + enter)
    await terminal.ended
    expect(terminal.text).toContain('The user said decline.')
  })
})

test('a server that stops at once is described by its own last words', async () => {
  const script = 'console.error("API_KEY is not set"); process.exit(3)'
  const { code, stdout, stderr } = await rally(['tools', '--', process.execPath, '-e', script])
  expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
  expect(stderr).toMatch(
    /^rally: The server stopped before it answered: .* exited with code 3\. [^]*API_KEY is not set\n$/,
  )
})

test('lists and calls declare the same capabilities', async () => {
  const asked: string[] = []
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      asked.push(body)
      response.writeHead(401).end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
  await rally(['tools', url, '--root', '/tmp'])
  await rally(['call', url, 'go', '--root', '/tmp'])
  server.close()
  const declared = asked.map((body) => {
    const { params } = JSON.parse(body) as { params: { _meta: Record<string, unknown> } }
    return params._meta['io.modelcontextprotocol/clientCapabilities']
  })
  expect(declared).toEqual([declared[1], { elicitation: { form: {}, url: {} }, roots: {} }])
})
