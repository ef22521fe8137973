import { describe, expect, test } from 'vitest'
import { decodeHeader, encodeHeader } from './headers.ts'

describe('a header value', () => {
  test.each(['deploy', 'us west 1', 'a\tb', 'file:///a%20b', '~!@#', '=?base64?', 'x=?base64?YQ==?='])(
    'that a header carries as it is stays as it is: %j',
    (text) => {
      expect(encodeHeader(text)).toBe(text)
      expect(decodeHeader(text)).toBe(text)
    },
  )

  test.each([
    ['nothing', '', '=?base64??='],
    ['letters beyond ASCII', 'caf\u00e9', '=?base64?Y2Fmw6k=?='],
    ['space before it', ' a', '=?base64?IGE=?='],
    ['space after it', 'a ', '=?base64?YSA=?='],
    ['a tab before it', '\ta', '=?base64?CWE=?='],
    ['line ends', 'a\r\nb', '=?base64?YQ0KYg==?='],
    ['a control character', 'a\0', '=?base64?YQA=?='],
    ['what looks encoded already', '=?base64?YQ==?=', '=?base64?PT9iYXNlNjQ/WVE9PT89?='],
  ])('of %s is Base64 in brackets', (_what, text, value) => {
    expect(encodeHeader(text)).toBe(value)
    expect(decodeHeader(value)).toBe(text)
  })

  test.each(['=?base64?YQ?=', '=?base64?YR==?=', '=?base64?Y Q==?=', '=?base64?!?=', 'caf\u00e9', 'a\0'])(
    'that nobody wrote so is refused: %j',
    (value) => {
      expect(decodeHeader(value)).toBeUndefined()
    },
  )
})
