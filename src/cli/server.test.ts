import { pathToFileURL } from 'node:url'
import { describe, expect, test } from 'vitest'
import { readEnvironment, readHeaders, readRoots, splitCommand, takeServer } from './server.ts'

describe('the server', () => {
  test('is the address that comes first', () => {
    const typed = splitCommand(['http://127.0.0.1:3000/mcp', 'deploy', 'env=prod'])
    expect(takeServer(typed)).toEqual({ server: { url: 'http://127.0.0.1:3000/mcp' }, rest: ['deploy', 'env=prod'] })
  })

  test('is the command after --, with all that follows', () => {
    const typed = splitCommand(['deploy', 'env=prod', '--', 'node', 'server.js', '--', '-x'])
    expect(takeServer(typed)).toEqual({
      server: { command: 'node', args: ['server.js', '--', '-x'], cwd: process.cwd() },
      rest: ['deploy', 'env=prod'],
    })
  })

  test.each([
    { argv: [], says: 'Which server? Give a URL first, or the command that starts it after --.' },
    { argv: ['deploy'], says: '"deploy" is not the URL of a server.' },
    { argv: ['ftp://example.com'], says: '"ftp://example.com" is not the URL of a server.' },
    { argv: ['deploy', '--'], says: 'The command that starts the server is missing after --.' },
    { argv: ['https://example.com', 'deploy', '--', 'node'], says: 'The server is given twice' },
  ])('is not to be had from $argv', ({ argv, says }) => {
    expect(() => takeServer(splitCommand(argv))).toThrow(says)
  })
})

test('variables are given, or passed on from ours', () => {
  expect(readEnvironment(['A=1', 'B=x=y', 'C=', 'D'], { D: 'ours', E: 'secret' })).toEqual({
    A: '1',
    B: 'x=y',
    C: '',
    D: 'ours',
  })
  expect(() => readEnvironment(['D'], {})).toThrow('-e D: there is no variable with that name to pass on.')
  expect(() => readEnvironment(['=x'], {})).toThrow('the name of the variable is missing')
})

test('headers have a name and a value, and one that says who is calling goes before the token', () => {
  expect(readHeaders(['X-A: b: c', 'x-empty:'], 't')).toEqual({
    authorization: 'Bearer t',
    'x-a': 'b: c',
    'x-empty': '',
  })
  expect(readHeaders(['Authorization: Basic x'], 't')).toEqual({ authorization: 'Basic x' })
  expect(readHeaders([], '')).toEqual({})
  for (const text of ['a secret', ': x', 'X-A: b\nX-C: d']) {
    expect(() => readHeaders([text], undefined)).toThrow("A header is written as -H 'Name: value'.")
  }
})

test('roots are folders as addresses', () => {
  expect(readRoots(['/a b', 'c'])).toEqual([{ uri: 'file:///a%20b' }, { uri: pathToFileURL('c').href }])
})
