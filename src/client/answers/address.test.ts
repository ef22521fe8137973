import { expect, test } from 'vitest'
import { readVisitAddress } from './address.ts'

const read = (url: unknown): object => readVisitAddress(url, (why) => new Error(why))

test.each([
  ['https://example.com/a?b=c#d', 'example.com', false],
  ['http://127.0.0.1:3000/', '127.0.0.1:3000', false],
  ['https://xn--pple-43d.com/', 'xn--pple-43d.com', true],
  ['https://sub.xn--80ak6aa92e.com/', 'sub.xn--80ak6aa92e.com', true],
  ['https://\u0430pple.com/sign-in', 'xn--pple-43d.com', true],
  ['https://example.com/xn--path', 'example.com', false],
])('%s is an address at %s', (url, host, lookalike) => {
  expect(read(url)).toEqual({ url, host, lookalike })
})

test.each([
  ['javascript:alert(1)', '"javascript:" address'],
  ['file:///etc/passwd', '"file:" address'],
  ['data:text/html,x', '"data:" address'],
  ['ftp://example.com/', '"ftp:" address'],
  ['https://accounts.example@evil.example/', 'a name or a password'],
  ['https://:secret@example.com/', 'a name or a password'],
  ['/relative', 'no address'],
  ['', 'no address'],
  [7, 'no address'],
  [undefined, 'no address'],
  [`https://example.com/${'a'.repeat(9_000)}`, 'no address'],
])('nobody is sent to %j', (url, why) => {
  expect(() => read(url)).toThrow(why)
})
