import fc from 'fast-check'
import { parseTemplate } from 'url-template'
import { describe, expect, test } from 'vitest'
import { RallyError } from '../protocol/errors.ts'
import { UriTemplate } from './uri-template.ts'

const match = (template: string, uri: string): unknown => new UriTemplate(template).match(uri)

const word = fc.string({ minLength: 1, maxLength: 8, unit: 'grapheme' }).filter((text) => !/\p{Cs}/u.test(text))

function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16)}`)
}

describe('the operators of RFC 6570', () => {
  test.each([
    ['x://{id}', 'x://a', { id: 'a' }],
    ['x://{id}', 'x://a-b_c.d~e', { id: 'a-b_c.d~e' }],
    ['x://{a}/{b}', 'x://1/2', { a: '1', b: '2' }],
    ['x://{a,b}', 'x://1,2', { a: '1', b: '2' }],
    ['x://{a}-{b}', 'x://1-2-3', { a: '1-2', b: '3' }],
    ['x://{+path}', 'x://a/b?c=d#e', { path: 'a/b?c=d#e' }],
    ['x://{+path}/end', 'x://a/b/end/end', { path: 'a/b/end' }],
    ['x://f{#part}', 'x://f#a/b', { part: 'a/b' }],
    ['x://f{.ext}', 'x://f.tar.gz', { ext: 'tar.gz' }],
    ['x://f{.a,b}', 'x://f.tar.gz', { a: 'tar', b: 'gz' }],
    ['x://f{/a,b}', 'x://f/1/2', { a: '1', b: '2' }],
    ['x://f{;a,b}', 'x://f;a=1;b=2', { a: '1', b: '2' }],
    ['x://f{?q,limit}', 'x://f?q=1&limit=2', { q: '1', limit: '2' }],
    ['x://f?fixed=1{&q}', 'x://f?fixed=1&q=2', { q: '2' }],
    ['x://{user.name}', 'x://ada', { 'user.name': 'ada' }],
    ['x://f{?a%20b}', 'x://f?a%20b=1', { 'a%20b': '1' }],
  ])('%s is found in %s', (template, uri, variables) => {
    expect(match(template, uri)).toEqual(variables)
  })

  test.each([
    ['x://{rest*}', 'x://a,b', { rest: ['a', 'b'] }],
    ['x://{rest*}', 'x://a', { rest: ['a'] }],
    ['x://{+rest*}', 'x://a/b,c', { rest: ['a/b', 'c'] }],
    ['x://f{/path*}', 'x://f/a/b/c', { path: ['a', 'b', 'c'] }],
    ['x://f{/path*,last}', 'x://f/a/b', { path: ['a', 'b'] }],
    ['x://f{.parts*}', 'x://f.a.b', { parts: ['a', 'b'] }],
    ['x://f{#parts*}', 'x://f#a,b', { parts: ['a', 'b'] }],
    ['x://f{?tag*}', 'x://f?tag=a&tag=b', { tag: ['a', 'b'] }],
    ['x://f{?tag*,q}', 'x://f?tag=a&tag=b&q=c', { tag: ['a', 'b'], q: 'c' }],
    ['x://f{;tag*}', 'x://f;tag=a;tag=b', { tag: ['a', 'b'] }],
  ])('an exploded variable is a list: %s in %s', (template, uri, variables) => {
    expect(match(template, uri)).toEqual(variables)
  })

  test.each([
    ['x://f{#part}', 'x://f', {}],
    ['x://f{.ext}', 'x://f', {}],
    ['x://f{/a,b}', 'x://f', {}],
    ['x://f{/a,b}', 'x://f/1', { a: '1' }],
    ['x://f{;a,b}', 'x://f;b=2', { b: '2' }],
    ['x://f{?q,limit}', 'x://f', {}],
    ['x://f{?q,limit}', 'x://f?q=1', { q: '1' }],
    ['x://f{?q,limit}', 'x://f?limit=2', { limit: '2' }],
    ['x://f{?q,query}', 'x://f?query=2', { query: '2' }],
    ['x://f?fixed=1{&q}', 'x://f?fixed=1', {}],
    ['x://f{?q}{&more}', 'x://f?q=1&more=2', { q: '1', more: '2' }],
  ])('what an operator introduces may be left out: %s in %s', (template, uri, variables) => {
    expect(match(template, uri)).toEqual(variables)
  })

  test.each([
    ['x://f{?q,limit}', 'x://f?limit=2&q=1', { q: '1', limit: '2' }],
    ['x://f{;a,b}', 'x://f;b=2;a=1', { a: '1', b: '2' }],
  ])('values that have names may come in any order: %s in %s', (template, uri, variables) => {
    expect(match(template, uri)).toEqual(variables)
  })

  test.each([
    ['x://f{?q}', 'x://f?q=', { q: '' }],
    ['x://f{?q}', 'x://f?q', { q: '' }],
    ['x://f{;q}', 'x://f;q', { q: '' }],
    ['x://f{/path*}', 'x://f/', { path: [''] }],
    ['x://f{.ext}', 'x://f.', { ext: '' }],
  ])('a value may be empty where its operator shows that it is there: %s in %s', (template, uri, variables) => {
    expect(match(template, uri)).toEqual(variables)
  })

  test.each([
    ['x://{id:3}', 'x://abc', { id: 'abc' }],
    ['x://{id:3}', 'x://ab', { id: 'ab' }],
    ['x://{id:3}', 'x://abcd', undefined],
    ['x://{id:1}', 'x://%F0%9F%98%80', { id: '\u{1f600}' }],
    ['x://{id:1}', 'x://%F0%9F%98%80a', undefined],
  ])('a prefix is at most so many characters long: %s in %s', (template, uri, variables) => {
    expect(match(template, uri)).toEqual(variables)
  })

  test.each([
    ['x://{id}', 'x://'],
    ['x://{id}', 'x://a/b'],
    ['x://{id}', 'x://a?b'],
    ['x://{id}', 'x://a,b'],
    ['x://{id}', 'y://a'],
    ['x://{id}/', 'x://a'],
    ['x://{+path}', 'x://'],
    ['x://{a,b}', 'x://1'],
    ['x://{a}/{b}', 'x:///2'],
    ['x://f{?q}', 'x://f?other=1'],
    ['x://f{?q}', 'x://f?q=1&other=1'],
    ['x://f{?q}', 'x://f?q=1&q=2'],
    ['x://f{?q}', 'x://f?'],
    ['x://f{?q}', 'x://f?q=1&'],
    ['x://f{?q}', 'x://f?qq=1'],
    ['x://{constructor}/{b}', 'x:///1'],
  ])('%s is not found in %s', (template, uri) => {
    expect(match(template, uri)).toBeUndefined()
  })

  test('whatever values a template was expanded with are found again', () => {
    fc.assert(
      fc.property(word, word, fc.array(word, { minLength: 1, maxLength: 4 }), word, (id, sub, path, q) => {
        const [first, second] = [encode(id), encode(sub)]
        const rest = path.map((part) => `/${encode(part)}`).join('')
        const uri = `x://${first}/${second}${rest}?q=${encode(q)}&tag=${path.map(encode).join('&tag=')}`
        expect(match('x://{id}/{sub}{/path*}{?q,tag*}', uri)).toEqual({ id, sub, path, q, tag: path })
      }),
      { numRuns: 200 },
    )
  })
})

describe('what url-template expands', () => {
  test.each([
    'x://{id}/{sub}',
    'x://{+id}',
    'x://a{#id}',
    'x://a{.id}',
    'x://a{/id,sub}',
    'x://a{/list*}',
    'x://a{;id}',
    'x://a{?id,list*}',
    'x://a?b=1{&id,sub}',
    'x://{id}{/list*}{?sub}',
  ])('by %s is read back', (template) => {
    const expander = parseTemplate(template)
    const value = fc.string({
      minLength: 1,
      maxLength: 6,
      unit: fc.constantFrom('a', 'Z', '0', '-', '_', '~', ' ', '\u00e9', '\u{1f600}'),
    })
    fc.assert(
      fc.property(value, value, fc.array(value, { minLength: 1, maxLength: 3 }), (id, sub, list) => {
        const given = { id, sub, list }
        const used = Object.fromEntries(Object.entries(given).filter(([name]) => template.includes(name)))
        expect(match(template, expander.expand(given))).toEqual(used)
      }),
    )
  })
})

describe('percent-encoding', () => {
  test.each([
    ['x://caf%C3%A9', { id: 'caf\u00e9' }],
    ['x://caf%c3%a9', { id: 'caf\u00e9' }],
    ['x://%2F', { id: '/' }],
    ['x://%2f..%2f', { id: '/../' }],
    ['x://a%20b', { id: 'a b' }],
    ['x://a%00b', { id: 'a\0b' }],
    ['x://%25', { id: '%' }],
    ['x://%2541', { id: '%41' }],
    ["x://it's(*)!", { id: "it's(*)!" }],
  ])('is decoded once in a value: %s', (uri, variables) => {
    expect(match('x://{id}', uri)).toEqual(variables)
  })

  test('may be of either case in the text of a template, where what no URI has is encoded', () => {
    expect(match('x://caf%c3%a9/{id}', 'x://caf%C3%A9/1')).toEqual({ id: '1' })
    expect(match('x://caf\u00e9/{id}', 'x://caf%c3%A9/1')).toEqual({ id: '1' })
  })

  test('is never taken apart', () => {
    expect(match('x://{id}41', 'x://%41')).toBeUndefined()
    expect(match('x://{id}1', 'x://%411')).toEqual({ id: 'A' })
  })

  test.each(['x://%', 'x://%4', 'x://%zz', 'x://%FF', 'x://%C3', 'x://%E0%A4%A', 'x://%ED%A0%80', 'x://%C0%AF'])(
    'that is malformed or no text fits nothing: %s',
    (uri) => {
      expect(match('x://{id}', uri)).toBeUndefined()
      expect(match('x://{+id}', uri)).toBeUndefined()
    },
  )
})

describe('hostile URIs', () => {
  test.each([
    ['NUL', 'x://a\0b'],
    ['a newline', 'x://a\nb'],
    ['a space', 'x://a b'],
    ['a lone surrogate', 'x://\ud800'],
    ['text beyond ASCII', 'x://caf\u00e9'],
    ['braces', 'x://{id}'],
    ['a backslash', 'x://a\\b'],
  ])('are no URIs, and fit nothing: %s', (_what, uri) => {
    expect(match('x://{+id}', uri)).toBeUndefined()
  })

  test('reach no property but their own', () => {
    const found = new UriTemplate('x://{toString}/{hasOwnProperty}').match('x://__proto__/constructor')
    expect(found).toEqual({ toString: '__proto__', hasOwnProperty: 'constructor' })
    expect(Object.getPrototypeOf(found)).toBe(Object.prototype)
  })

  test('of any shape are matched in linear time: a hundred templates and 8 KiB come to an end', () => {
    // For each, a matcher that only goes back would try every way to share the characters out.
    const templates = [
      'x://{+a}-{+b}-{+c}-{+d}-{+e}!',
      'x://{a}-{b}-{c}-{d}-{e}/',
      'x://{a}{b}{c}{d}{e}{f}/',
      'x://{+a,b,c,d}/{+e*}/{+f*}!',
      'x://f{/a*,b,c}{.d*}{?e*,f}{&g*}!',
    ].flatMap((template) => Array.from({ length: 20 }, (_, i) => new UriTemplate(`${template}${i}`)))
    const uris = ['-', 'a-', '/a', '%2D', '&e=1', ',', '.a'].map((text) => `x://f${text.repeat(8_192)}`.slice(0, 8_190))
    const found = templates.filter((template, i) => template.match(uris[i % uris.length] ?? '') !== undefined)
    expect(found).toEqual([])
  })

  test('of full length are still found', () => {
    const uri = `x://${'a/'.repeat(4_000)}end`
    expect(match('x://{+path}/end', uri)).toEqual({ path: 'a/'.repeat(3_999) + 'a' })
    expect(new UriTemplate('x:/{/path*}').match(uri)?.['path']).toHaveLength(4_001)
  })
})

describe('a template that cannot be used', () => {
  test.each([
    ['x://{id', 'a brace has no counterpart'],
    ['x://id}', 'a brace has no counterpart'],
    ['x://{a{b}}', 'a brace has no counterpart'],
    ['x://{}', '"" is not a variable'],
    ['x://{a,}', '"" is not a variable'],
    ['x://{=a}', '"=a" is not a variable'],
    ['x://{a b}', '"a b" is not a variable'],
    ['x://{a:0}', '"a:0" is not a variable'],
    ['x://{a:12345}', '"a:12345" is not a variable'],
    ['x://{a:3*}', '"a:3*" is not a variable'],
    ['x://{.}', '"" is not a variable'],
    ['x://{a..b}', '"a..b" is not a variable'],
    ['x://{__proto__}', '"__proto__" is not a variable'],
    ['x://{a}/{a}', 'it has "a" twice'],
    ['x://b', 'it has no variable; use app.resource for a fixed URI'],
    ['x://b c/{a}', 'it contains a character that a URI cannot have'],
    ['x://%zz/{a}', 'it contains a character that a URI cannot have'],
    ['x://\ud800/{a}', 'it contains a character that a URI cannot have'],
    [undefined as never, 'it must be a string'],
  ])('is an error that says why: %s', (template, why) => {
    expect(() => new UriTemplate(template)).toThrow(RallyError)
    expect(() => new UriTemplate(template)).toThrow(`is not valid: ${why}.`)
  })
})
