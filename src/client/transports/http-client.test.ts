import { expect, test } from 'vitest'
import { wasSent } from './http-client.ts'

const failure = (more: object): Error => Object.assign(new Error('failed'), more)
const refused = failure({ syscall: 'connect', code: 'ECONNREFUSED' })
const reset = failure({ syscall: 'read', code: 'ECONNRESET' })

test.each<[string, unknown, boolean]>([
  ['a connection that was refused', refused, false],
  ['a name that is not known', failure({ syscall: 'getaddrinfo', code: 'ENOTFOUND' }), false],
  ['every address refused', new AggregateError([refused, refused]), false],
  ['a certificate that is not trusted', failure({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }), false],
  ['a certificate of another host', failure({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' }), false],
  ['a connection that was reset', reset, true],
  ['a connection that hung up', failure({ code: 'ECONNRESET' }), true],
  ['one of several addresses reset', new AggregateError([refused, reset]), true],
  ['a failure that says nothing', new Error('failed'), true],
  ['no error at all', undefined, true],
  ['a text', 'failed', true],
])('after %s it is known whether something may have been sent', (_what, error, sent) => {
  expect(wasSent(error)).toBe(sent)
})
