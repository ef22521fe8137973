import { expect, test } from 'vitest'
import { readChallenge } from './challenge.ts'

const metadata = 'https://mcp.example.com/.well-known/oauth-protected-resource'

test.each([
  [`Bearer resource_metadata="${metadata}", scope="a b"`, { resourceMetadata: metadata, scopes: ['a', 'b'] }],
  [`bearer error=insufficient_scope,scope="a"`, { error: 'insufficient_scope', scopes: ['a'] }],
  [`Basic realm="Bearer scope=x", Bearer scope="a \\"b c"`, { scopes: ['a', 'c'] }],
  [`Negotiate abc==, Bearer error = "invalid_token"`, { error: 'invalid_token' }],
  [`Basic realm="x", scope="not ours"`, {}],
  [`Bearer scope="first", scope="second"`, { scopes: ['first'] }],
  [`Bearer scope=""`, { scopes: [] }],
  ['', {}],
])('reads the challenge %s', (header, expected) => {
  const { resourceMetadata, scopes, error } = readChallenge(header)
  expect({
    ...(resourceMetadata !== undefined && { resourceMetadata }),
    ...(scopes !== undefined && { scopes }),
    ...(error !== undefined && { error }),
  }).toEqual(expected)
})

test('keeps a hundred scopes, each once', () => {
  const scope = Array.from({ length: 1_000 }, (_, i) => `s${i % 500}`).join(' ')
  expect(readChallenge(`Bearer scope="${scope}"`).scopes).toHaveLength(100)
})

test.each(['a="', '"', 'a=', 'a ', '\\"', 'Bearer a="\\', ',a=b,"'])('takes no longer for %s, repeated', (part) => {
  const since = performance.now()
  readChallenge(`Bearer ${part.repeat(100_000)}`)
  expect(performance.now() - since).toBeLessThan(100)
})
