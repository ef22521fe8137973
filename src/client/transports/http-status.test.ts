import { expect, test } from 'vitest'
import { statusError } from './http-status.ts'

function errorOf(status: number, text: string, headers: Record<string, string> = {}) {
  return statusError({ status, header: (name) => headers[name], isStream: false }, text)
}

const SAYS = 'The server refuses this caller (HTTP 403)'

test.each<[string, string, Record<string, string>, string]>([
  ['a JSON-RPC error', '{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"Not you."}}', {}, ': Not you.'],
  ['an error of OAuth', '{"error":"invalid_token","error_description":"It has expired."}', {}, ': It has expired.'],
  ['a message of a gateway', '{"message":"Forbidden by policy 7"}', {}, ': Forbidden by policy 7'],
  ['a detail', '{"detail":"No."}', {}, ': No.'],
  ['only a code', '{"error":"access_denied"}', {}, ': access_denied'],
  ['a plain text', ' Blocked by\r\nthe proxy. ', { 'content-type': 'text/plain' }, ': Blocked by the proxy.'],
  ['a page', '<html>Forbidden</html>', { 'content-type': 'text/html' }, ''],
  ['nothing', '', {}, ''],
  [
    'a challenge',
    '',
    { 'www-authenticate': 'Bearer realm="a", error="invalid_token", error_description="The \\"token\\" has expired"' },
    ': The "token" has expired',
  ],
  [
    'the scope that is missing',
    '',
    { 'www-authenticate': 'Bearer error="insufficient_scope", scope="files:write files:read"' },
    ': insufficient_scope (scope: files:write files:read)',
  ],
])('a refusal shows the own words of the server: %s', (_what, text, headers, words) => {
  expect(errorOf(403, text, headers)).toMatchObject({ code: 'UNAUTHORIZED', status: 403, message: `${SAYS}${words}` })
})

test('the words are cleaned and cut, however the server sends them', () => {
  const evil = `a\u001B[2J\u202Eb\r\nc\u0000${'d'.repeat(1_000_000)}`
  const challenge = `Bearer error_description="a\u001B[2J${'d'.repeat(1_000_000)}"`
  for (const status of [401, 403, 400, 418, 503]) {
    const message =
      errorOf(status, JSON.stringify({ message: evil }), { 'content-type': 'application/json' })?.message ?? ''
    expect(message).toMatch(/: a \[2J b c d/)
    expect(message.length).toBeLessThan(800)
  }
  const { message, challenge: kept = '' } = errorOf(401, '', { 'www-authenticate': challenge }) ?? { message: '' }
  expect(message.length).toBeLessThan(800)
  expect(kept.length).toBeLessThan(9_000)
})

test('another refusal shows them too, and a JSON-RPC error is an answer', () => {
  expect(errorOf(413, '{"message":"At most 1 MB."}')?.message).toBe(
    'The server answered HTTP 413 without a protocol message. The server says: At most 1 MB. Check the address.',
  )
  expect(errorOf(400, '{"jsonrpc":"2.0","error":{"code":-32600,"message":"No."}}')).toBeUndefined()
})
