import { describe, expect, test } from 'vitest'
import type { CallToolResult, ContentBlock } from '../protocol/messages.ts'
import { onlyBytes, resultText } from './results.ts'

function result(content: unknown[], structuredContent?: unknown): CallToolResult {
  const structured = structuredContent === undefined ? {} : { structuredContent }
  return { resultType: 'complete', content: content as ContentBlock[], ...structured }
}

describe('the result of a tool', () => {
  test.each([
    { block: { type: 'text', text: 'a\u001B[2Jb' }, text: 'a\\x1b[2Jb' },
    { block: { type: 'image', mimeType: 'image/png', data: 'AAAA' }, text: '[image: image/png, 3 bytes]' },
    { block: { type: 'audio', mimeType: 'audio/\u0007', data: 7 }, text: '[audio: audio/\\x07, 0 bytes]' },
    { block: { type: 'resource_link', uri: 'a:b', name: 'n', title: 'T' }, text: '[T: a:b]' },
    { block: { type: 'resource', resource: { uri: 'a:b', text: 'inside' } }, text: 'inside' },
    { block: { type: 'resource', resource: { uri: 'a:b', blob: 'AAA=' } }, text: '[a:b: bytes, 2 bytes]' },
    { block: { type: 'resource' }, text: '[: bytes, 0 bytes]' },
    { block: { type: 'unheard of', x: '\u009B' }, text: '{"type":"unheard of","x":"\\x9b"}' },
    { block: { type: 'text', text: { not: 'text' } }, text: '{"not":"text"}' },
  ])('with $block is shown as $text', ({ block, text }) => {
    expect(resultText('tools/call', result([block]))).toBe(text)
  })

  test('that says the same twice is shown once, and readably', () => {
    const said = [
      { type: 'text', text: 'Done.' },
      { type: 'text', text: '{"a": 1}' },
    ]
    expect(resultText('tools/call', result(said, { a: 1 }))).toBe('Done.\n{\n  "a": 1\n}')
    expect(resultText('tools/call', result(said, { a: 2 }))).toBe('Done.\n{"a": 1}\n{\n  "a": 2\n}')
    const ordered = [{ type: 'text', text: '{"b":2,"a":1}' }]
    expect(resultText('tools/call', result(ordered, { a: 1, b: 2 }))).toBe('{\n  "a": 1,\n  "b": 2\n}')
  })

  test.each([
    { what: 'a text', texts: ['Hello'], value: 'Hello' },
    { what: 'a text that looks like a number', texts: ['7'], value: '7' },
    { what: 'a number', texts: ['7'], value: 7 },
    { what: 'a list in one block', texts: ['[1, 2]'], value: [1, 2] },
    { what: 'a list with a block for each item', texts: ['a', 'b'], value: ['a', 'b'] },
    { what: 'a list of one', texts: ['a'], value: ['a'] },
  ])('that wraps $what in an object is shown as its text', ({ texts, value }) => {
    const content = texts.map((text) => ({ type: 'text', text }))
    expect(resultText('tools/call', result(content, { result: value }))).toBe(texts.join('\n'))
  })
})

test('a prompt is shown message by message', () => {
  const messages = [
    { role: 'user' as const, content: { type: 'text' as const, text: 'Hello.' } },
    { role: 'assistant' as const, content: { type: 'text' as const, text: 'Yes?' } },
  ]
  const prompt = { resultType: 'complete' as const, description: 'A talk', messages }
  expect(resultText('prompts/get', prompt)).toBe('A talk\n\nuser: Hello.\n\nassistant: Yes?')
})

test('a resource is shown part by part', () => {
  const contents = [
    { uri: 'a:1', text: 'one' },
    { uri: 'a:2', mimeType: 'image/png', blob: 'AAAA' },
  ]
  const read = { resultType: 'complete' as const, ttlMs: 0, cacheScope: 'private' as const, contents }
  expect(resultText('resources/read', read)).toBe('one\n[a:2: image/png, 3 bytes]')
})

test('what a result has beyond its kind is of no matter', () => {
  const odd = { ...result([{ type: 'text', text: 'Done.' }]), messages: 7, contents: [{ blob: 'AAAA' }] }
  expect(resultText('tools/call', odd)).toBe('Done.')
  expect(onlyBytes('tools/call', odd)).toBeUndefined()
})

test('bytes are bytes only where a resource has nothing else', () => {
  expect(bytesOf([{ uri: 'a:1', blob: 'AP8=' }])).toEqual(Buffer.from([0, 255]))
  expect(
    bytesOf([
      { uri: 'a:1', blob: 'AP8=' },
      { uri: 'a:2', blob: 'AP8=' },
    ]),
  ).toBeUndefined()
})

function bytesOf(contents: { uri: string; blob: string }[]): Buffer | undefined {
  return onlyBytes('resources/read', { resultType: 'complete', ttlMs: 0, cacheScope: 'private', contents })
}
