import { expect, test } from 'vitest'
import { ClientError } from '../client/errors.ts'
import { ProtocolError } from '../protocol/errors.ts'
import { exitCodeOf, Interrupted, Unanswered, whyOf, UsageError } from './exit.ts'

test.each([
  { error: new UsageError('x'), code: 2 },
  { error: new ClientError('OPTION_INVALID', 'x'), code: 2 },
  { error: new ClientError('PENDING_INVALID', 'x'), code: 2 },
  { error: new ClientError('ANSWER_INVALID', 'x'), code: 2 },
  { error: new ClientError('CONNECTION', 'x'), code: 3 },
  { error: new ClientError('LOST', 'x'), code: 3 },
  { error: new ProtocolError(-32603, 'x'), code: 3 },
  { error: new Error('x'), code: 3 },
  { error: new Unanswered('x'), code: 4 },
  { error: new ClientError('NO_ANSWERER', 'x'), code: 4 },
  { error: new ProtocolError(-32021, 'x'), code: 4 },
  { error: new Interrupted(), code: 130 },
])('$error.name $error.code ends with $code', ({ error, code }) => {
  expect(exitCodeOf(error)).toBe(code)
})

test('the words of a server are shown without control sequences', () => {
  expect(whyOf(new ProtocolError(-32603, 'a\u001B[2Jb'))).toBe('a\\x1b[2Jb')
})

test.each([
  { error: new ClientError('UNAUTHORIZED', 'No.'), says: 'RALLY_TOKEN' },
  { error: new ClientError('TIMEOUT', 'No.'), says: '--timeout' },
  { error: new ProtocolError(-32021, 'No.', { requiredCapabilities: { sampling: {} } }), says: '--answers' },
  { error: new ProtocolError(-32021, 'No.', { requiredCapabilities: { roots: {} } }), says: '--root' },
  { error: new ProtocolError(-32602, 'Invalid or expired requestState'), says: 'Make the call again.' },
])('$error.code comes with advice: $says', ({ error, says }) => {
  expect(whyOf(error)).toMatch(/^(No\.|Invalid or expired requestState)\n/)
  expect(whyOf(error)).toContain(says)
})

test('a server that knows the caller and refuses is not asked again with a token', () => {
  const error = new ClientError('UNAUTHORIZED', 'The server refuses this caller (HTTP 403): no.', { status: 403 })
  expect(whyOf(error)).toBe('The server refuses this caller (HTTP 403): no.')
})
