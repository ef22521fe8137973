import { CommanderError } from 'commander'
import { expect, test } from 'vitest'
import type { Console } from './console.ts'
import { exitCodeOf } from './exit.ts'
import { runProgram } from './program.ts'

/** Where nothing is expected to be said. */
const console: Console = {
  print: unexpected,
  printBytes: unexpected,
  tell: unexpected,
  input: process.stdin,
  errors: process.stderr,
  isResultOnScreen: false,
  isInteractive: false,
  columns: Infinity,
  colours: { results: false, errors: false },
}

const runContext = { console, env: {}, signal: new AbortController().signal, version: '1.0.0' }

function unexpected(said: unknown): never {
  throw new Error(`This was not to be said: ${String(said)}`)
}

const URL = 'http://127.0.0.1:9/mcp'

test.each([
  { argv: ['call'], says: 'Which server? Give a URL first, or the command that starts it after --.' },
  { argv: ['call', 'deploy', 'env=prod'], says: '"deploy" is not the URL of a server. Give a URL first' },
  { argv: ['call', URL], says: 'Which tool? npx mcp-rally tools <server> lists them.' },
  { argv: ['call', '--', 'node'], says: 'Which tool? npx mcp-rally tools <server> lists them.' },
  { argv: ['call', URL, 'x', '--args', '[]'], says: '--args must be a JSON object' },
  { argv: ['call', URL, 'x', '--args', '{'], says: '--args is not valid JSON' },
  { argv: ['call', URL, 'x', '--', 'node'], says: 'The server is given twice' },
  { argv: ['call', URL, 'x', '--answers', '/nowhere'], says: 'The answers cannot be read' },
  { argv: ['call', URL, 'x', '--save', '/nowhere/at/all'], says: 'cannot write there' },
  { argv: ['call', 'x', '-e', 'MISSING', '--', 'node'], says: 'there is no variable with that name to pass on' },
  { argv: ['tools', '--'], says: 'The command that starts the server is missing after --.' },
  { argv: ['tools', URL, 'more'], says: '"more" is not expected' },
  { argv: ['tools', URL, '-H', 'secret'], says: "A header is written as -H 'Name: value'." },
  { argv: ['tools', 'http://user:secret@127.0.0.1:9/mcp'], says: 'must not contain a user name or password' },
  { argv: ['prompt', URL], says: 'Which prompt? npx mcp-rally prompts <server> lists them.' },
  { argv: ['prompt', URL, 'x', 'a:=1'], says: 'takes one plain text' },
  { argv: ['read', URL], says: 'Which resource? npx mcp-rally resources <server> lists them.' },
  { argv: ['read', URL, 'a:b', 'more'], says: '"more" is not expected' },
  { argv: ['resume', '/nowhere'], says: 'The saved call cannot be read' },
])('$argv is wrong use, told before a server is asked anything', async ({ argv, says }) => {
  const error: unknown = await runProgram(argv, runContext).catch((thrown: unknown) => thrown)
  expect((error as Error).message).toContain(says)
  expect(exitCodeOf(error)).toBe(2)
})

test.each([
  { argv: ['call', URL, 'x', '--nonsense'], says: "unknown option '--nonsense'" },
  { argv: ['call', URL, 'x', '--timeout', 'soon'], says: 'It must be a number above 0.' },
  { argv: ['resume'], says: "missing required argument 'file'" },
  { argv: ['resume', 'a', URL, 'more'], says: 'too many arguments' },
])('$argv is refused by what reads the options', async ({ argv, says }) => {
  const error: unknown = await runProgram(argv, runContext).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(CommanderError)
  expect((error as Error).message).toContain(says)
})
