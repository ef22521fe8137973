import { describe, expect, test } from 'vitest'
import { readArguments, readNumber, readTexts, typeText } from './arguments.ts'

const schema = {
  type: 'object',
  $defs: { size: { enum: ['S', 'M'] }, loop: { $ref: '#/$defs/loop' }, 'a/b~c': { type: 'integer' } },
  properties: {
    text: { type: 'string' },
    whole: { type: 'integer' },
    number: { type: 'number' },
    flag: { type: 'boolean' },
    nothing: { type: 'null' },
    object: { type: 'object' },
    list: { type: 'array', items: { type: 'integer' } },
    texts: { type: 'array', items: { type: 'string' } },
    any: {},
    maybe: { type: ['integer', 'null'] },
    either: { anyOf: [{ type: 'string' }, { type: 'integer' }] },
    levels: { enum: [1, 2, true] },
    size: { $ref: '#/$defs/size' },
    escaped: { $ref: '#/$defs/a~1b~0c' },
    loop: { $ref: '#/$defs/loop' },
    elsewhere: { $ref: 'https://example.com/schema' },
    broken: 'no schema',
  },
}

test.each([
  { word: 'text=12', value: '12' },
  { word: 'text=', value: '' },
  { word: 'text=a=b', value: 'a=b' },
  { word: 'text= spaced ', value: ' spaced ' },
  { word: 'whole=-12', value: -12 },
  { word: 'whole=1e3', value: 1000 },
  { word: 'number=1.5', value: 1.5 },
  { word: 'number=.5', value: 0.5 },
  { word: 'flag=false', value: false },
  { word: 'nothing=null', value: null },
  { word: 'object={"a":1}', value: { a: 1 } },
  { word: 'list=7', value: [7] },
  { word: 'list=[1,2]', value: [1, 2] },
  { word: 'texts=a,b', value: ['a,b'] },
  { word: 'any=12', value: '12' },
  { word: 'any:=12', value: 12 },
  { word: 'text:="a"', value: 'a' },
  { word: 'maybe=null', value: null },
  { word: 'maybe=3', value: 3 },
  { word: 'either=3', value: '3' },
  { word: 'levels=2', value: 2 },
  { word: 'levels=true', value: true },
  { word: 'size=M', value: 'M' },
  { word: 'escaped=5', value: 5 },
  { word: 'loop=5', value: '5' },
  { word: 'elsewhere=5', value: '5' },
  { word: 'broken=5', value: '5' },
  { word: 'unknown=5', value: '5' },
])('$word is $value', ({ word, value }) => {
  const key = word.slice(0, word.search(/:?=/))
  expect(readArguments([word], schema)).toEqual({ [key]: value })
})

test.each([
  { words: ['whole=1.5'], says: 'whole takes a whole number, not "1.5".' },
  { words: ['whole='], says: 'whole takes a whole number, not "".' },
  { words: ['whole=0x10'], says: 'whole takes a whole number, not "0x10".' },
  { words: ['number=1e999'], says: 'number takes a number, not "1e999".' },
  { words: ['flag=yes'], says: 'flag takes true or false, not "yes".' },
  { words: ['object=[]'], says: `object takes a JSON object, not "[]". Write it as object:='{"a":1}'.` },
  { words: ['object:=[1]'], says: `object takes a JSON object, not "[1]". Write it as object:='{"a":1}'.` },
  { words: ['list:=7'], says: `list takes a JSON list, not "7". Write it as list:='["a","b"]'.` },
  { words: ['whole:=1.5'], says: 'whole takes a whole number, not "1.5".' },
  { words: ['flag:="yes"'], says: 'flag takes true or false' },
  { words: ['maybe=x'], says: 'maybe takes a whole number or null, not "x".' },
  { words: ['list=x'], says: 'list takes a whole number, not "x".' },
  { words: ['list=[1'], says: 'list is not valid JSON: "[1".' },
  { words: ['any:={'], says: 'any:= is not valid JSON: "{". Put it in single quotes' },
  { words: ['text=a', 'text=b'], says: 'text is given 2 times, but is not a list.' },
  { words: ['prod'], says: '"prod" is not an argument. Write key=value, or key:=json for a JSON value.' },
  { words: ['=x'], says: '"=x" is not an argument. Write key=value, or key:=json for a JSON value.' },
])('$words is refused', ({ words, says }) => {
  expect(() => readArguments(words, schema)).toThrow(says)
})

test('a list is written by repeating its key', () => {
  expect(readArguments(['list=1', 'list=2', 'list:=3'], schema)).toEqual({ list: [1, 2, 3] })
})

test('what is typed goes before what is given, and __proto__ is a key like others', () => {
  const read = readArguments(['text=b', '__proto__=x'], schema, { text: 'a', whole: 1 })
  expect(Object.entries(read)).toEqual([
    ['text', 'b'],
    ['whole', 1],
    ['__proto__', 'x'],
  ])
})

test('the arguments of a prompt are texts', () => {
  expect(readTexts(['a=1', 'b='])).toEqual({ a: '1', b: '' })
  expect(() => readTexts(['a:=1'])).toThrow('a: an argument of a prompt takes one plain text.')
})

test.each([
  { text: '1', number: 1 },
  { text: ' -1.50 ', number: -1.5 },
  { text: '', number: undefined },
  { text: 'Infinity', number: undefined },
  { text: '1,5', number: undefined },
])('"$text" is the number $number', ({ text, number }) => {
  expect(readNumber(text)).toBe(number)
})

describe('a type is told as', () => {
  test.each([
    { property: 'whole', text: 'integer' },
    { property: 'size', text: 'S|M' },
    { property: 'either', text: 'string|integer' },
    { property: 'levels', text: '1|2|true' },
    { property: 'any', text: 'any' },
    { property: 'loop', text: 'any' },
  ] as const)('$text for $property', ({ property, text }) => {
    expect(typeText(schema.properties[property], schema)).toBe(text)
  })
})

test('a schema of a server that refers to itself many times takes little time to describe', () => {
  const member = { $ref: '#' }
  const maze = { anyOf: Array.from({ length: 1_000 }, () => member), properties: { a: { $ref: '#' } } }
  const began = performance.now()
  typeText({ $ref: '#' }, maze)
  expect(performance.now() - began).toBeLessThan(2_000)
})
