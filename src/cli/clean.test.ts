import { describe, expect, test } from 'vitest'
import { clean, cleanJson, cleanLine, cleanMessage } from './clean.ts'

describe('text from a server', () => {
  test.each([
    { what: 'a colour', said: '\u001B[1;31mred\u001B[0m', shown: 'red' },
    { what: 'a cleared screen', said: '\u001B[2Jgone', shown: '\\x1b[2Jgone' },
    { what: 'a title of the window', said: '\u001B]0;owned\u0007', shown: '\\x1b]0;owned\\x07' },
    { what: 'an eight-bit control', said: '\u009B2J', shown: '\\x9b2J' },
    { what: 'a return that would write over the line', said: 'pay 1\rpay 9', shown: 'pay 1\\x0dpay 9' },
    { what: 'a backspace', said: 'a\bb', shown: 'a\\x08b' },
    { what: 'a reversal of direction', said: '\u202Egnp.exe', shown: '\\u{202e}gnp.exe' },
    { what: 'an isolate', said: '\u2066x\u2069', shown: '\\u{2066}x\\u{2069}' },
    { what: 'a hidden space', said: 'a\u200Bb', shown: 'a\\u{200b}b' },
    { what: 'a hidden tag', said: 'a\u{E0041}b', shown: 'a\\u{e0041}b' },
    { what: 'an odd line break', said: 'a\u2028b', shown: 'a\\u{2028}b' },
    { what: 'half a character', said: 'a\uD800b', shown: 'a\\u{d800}b' },
    { what: 'a colour inside of a control', said: '\u001B\u001B[0m[2J', shown: '\\x1b[2J' },
    { what: 'no text', said: { a: '\u001B[2J' }, shown: '{"a":"\\u001b[2J"}' },
    { what: 'nothing', said: undefined, shown: '' },
  ])('with $what is shown for what it is', ({ said, shown }) => {
    expect(clean(said)).toBe(shown)
  })

  test('keeps lines, tabs, other scripts and composed emoji', () => {
    const said = 'one\ntwo\tthree \u0645\u06CC\u200C\u062E\u0648\u0627\u0647\u0645 \u{1F469}\u200D\u{1F680} \u6F22'
    expect(clean(said)).toBe(said)
    expect(clean('one\r\ntwo')).toBe('one\ntwo')
  })

  test('is cut, and how much is missing is said', () => {
    expect(clean('x'.repeat(10), 4)).toBe('xxxx... (6 more characters)')
    expect(clean('x'.repeat(100_000)).length).toBeLessThan(5_000)
    expect(cleanMessage('a\n'.repeat(100)).split('\n').slice(-2)).toEqual(['a', '(40 more lines)'])
  })

  test('is one line where there is room for one', () => {
    expect(cleanLine(' a\n\n b\tc ')).toBe('a b c')
  })
})

test('JSON is the same value, without a character that a terminal acts on', () => {
  const value = { text: '\u001B[2J\u007F\u009B\u202E\u{E0041}\uD800 \u00E9 \u{1F469}\u200D\u{1F680}\n' }
  const text = cleanJson(value)
  expect(JSON.parse(text)).toEqual(value)
  expect(text).not.toMatch(/[\p{Cc}\u202E\u{E0041}\p{Cs}]/u)
  expect(text).toContain('\u00E9')
})
