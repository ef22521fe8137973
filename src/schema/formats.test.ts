import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { StringFormat } from '../protocol/messages.ts'
import { hasFormat } from './formats.ts'

const good: Record<StringFormat, string[]> = {
  email: ['ada@example.com', 'a.b+c@sub.example.co.uk', "o'brien@example.ie", 'jörg@müller.de', 'root@localhost'],
  uri: ['https://example.com', 'http://[::1]:80/', 'mailto:a@b.c', 'urn:isbn:1', 'https://de.wikipedia.org/wiki/Käse'],
  date: ['2026-07-28', '2024-02-29', '2000-02-29', '0001-01-01'],
  'date-time': [
    '2026-07-28T12:00:00Z',
    '2026-07-28t23:59:59.123456z',
    '2016-12-31T23:59:60Z',
    '2026-07-28T12:00:00-12:30',
  ],
}

const bad: Record<StringFormat, string[]> = {
  email: ['', '@', 'a@', '@b.c', 'a b@c.d', 'a@b..c', 'a@b.', 'a@-b.c', 'a@b c', 'a\n@b.c', 'a@b.c\n', '<a@b.c>'],
  uri: ['', 'example.com', '/path', '//host', 'https://', 'http://a b', 'https://a/\n', 'https://a/<b>', '1a:b'],
  date: [
    '',
    '2026-7-28',
    '2026-13-01',
    '2026-00-10',
    '2023-02-29',
    '1900-02-29',
    '2026-04-31',
    '2026-07-28Z',
    ' 2026-07-28',
  ],
  'date-time': [
    '',
    '2026-07-28',
    '2026-07-28T12:00',
    '2026-07-28T12:00:00',
    '2026-07-28 12:00:00Z',
    '2026-07-28T24:00:00Z',
    '2026-02-30T12:00:00Z',
    '2026-07-28T12:60:00Z',
    '2026-07-28T12:00:00+24:00',
    '2026-07-28T12:00:00Z\n',
  ],
}

const cases = (table: Record<StringFormat, string[]>): { format: StringFormat; text: string }[] =>
  (['email', 'uri', 'date', 'date-time'] as const).flatMap((format) => table[format].map((text) => ({ format, text })))

test.each(cases(good))('$text has the format $format', ({ format, text }) => {
  expect(hasFormat(format, text)).toBe(true)
})

test.each(cases(bad))('$text does not have the format $format', ({ format, text }) => {
  expect(hasFormat(format, text)).toBe(false)
})

describe('what standard tools produce has its format', () => {
  const moments = fc.date({ noInvalidDate: true, min: new Date('0001-01-01'), max: new Date('9999-12-31') })

  test('dates and times', () => {
    fc.assert(
      fc.property(moments, (moment) => {
        expect(hasFormat('date-time', moment.toISOString())).toBe(true)
        expect(hasFormat('date', moment.toISOString().slice(0, 10))).toBe(true)
      }),
    )
  })

  test('addresses', () => {
    fc.assert(
      fc.property(fc.webUrl(), fc.emailAddress(), (url, email) => {
        expect(hasFormat('uri', url)).toBe(true)
        expect(hasFormat('email', email)).toBe(true)
      }),
    )
  })
})

test('hostile text costs time linear in its length', () => {
  const hostile = ['@'.repeat(1e6), `a@${'a.'.repeat(5e5)}`, `a:${'%'.repeat(1e6)}`, `${'0'.repeat(1e6)}-01-01`]
  const started = performance.now()
  for (const text of hostile) {
    for (const format of ['email', 'uri', 'date', 'date-time'] as const) hasFormat(format, text)
  }
  expect(performance.now() - started).toBeLessThan(2000)
})
