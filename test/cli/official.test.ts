import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { jsonFile, rally } from './cli.ts'
import { KEYS, Terminal } from './terminal.ts'

const { enter, down, space } = KEYS

const SERVER = fileURLToPath(new URL('../interop/client-official-server.mjs', import.meta.url))
const OFFICIAL = ['--', process.execPath, SERVER, '--stdio']

test('the questions of the official server, one of every kind in one round, are answered from a file', async () => {
  const answers = await jsonFile({
    form: { confirm: true },
    page: 'accept',
    model: { role: 'assistant', content: { type: 'text', text: 'Well.' } },
  })
  const args = ['call', 'everything', '--answers', answers, '--root', '/tmp', '--json', ...OFFICIAL]
  const { code, stdout } = await rally(args)
  expect(code).toBe(0)
  const [{ text }] = (JSON.parse(stdout) as { content: [{ text: string }] }).content
  expect(JSON.parse(text)).toMatchObject([
    { kind: 'elicit', action: 'accept' },
    { kind: 'elicit', action: 'accept' },
    { kind: 'sampling' },
    { kind: 'roots', roots: [{ uri: 'file:///tmp' }] },
  ])
})

test('its forms are filled in at a terminal', async () => {
  const terminal = new Terminal(['call', 'book', ...OFFICIAL])
  await terminal.answer('name', `Ada${enter}`)
  await terminal.answer('email \\(optional\\)', enter)
  await terminal.answer('age', `36${enter}`)
  await terminal.answer('class', enter)
  await terminal.answer('insured', 'y')
  await terminal.answer('Send this', enter)
  await terminal.answer('Days', down + space + enter)
  expect(await terminal.ended).toBe(0)
  expect(terminal.text).toContain('{"name":"Ada","age":36,"class":"second","insured":true,"days":["sun"]}')
})

test('it is called again when it asks to be, and each round is told', async () => {
  const { code, stdout, stderr } = await rally(['call', 'later', ...OFFICIAL])
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'Now.\n' })
  expect(stderr).toMatch(/^(Round [123]: The official server asks to be called again\.\n){3}Round 4: .* is done\.\n$/)
})

test('a resource of it is read, and its question answered', async () => {
  const answers = await jsonFile({ ok: { confirm: true } })
  const { code, stdout } = await rally(['read', 'memo://2026/report', '--answers', answers, ...OFFICIAL])
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'Report of 2026\n' })
})
