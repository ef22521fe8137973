// Odd JSON values, and JSON texts with something changed in them.
import type { Random } from './random.ts'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

const STRINGS = [
  '',
  ' ',
  'a',
  '0',
  'null',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '\0',
  '\r\n',
  '\u001b[31m',
  '\u2028',
  '\ud800',
  '\udc00x',
  '😀',
  'e\u0301',
  '../../x',
  '%2e%2e%00',
  'note://plain',
  '=?base64?AA==?=',
  'x'.repeat(300),
  'y'.repeat(9_000),
]
const NUMBERS = [0, -1, 1, 1.5, 2 ** 31, -(2 ** 31), 2 ** 53, -(2 ** 53) - 2, 1e21, 1e308, 5e-324]
/** Only a text has these: a parsed value does not show them. */
const NUMBER_TEXTS = ['-0', '1e999', '-1e999', '1E400', '0.1e-400', '9007199254740993', '01', '.5', 'NaN']
const KEYS = ['__proto__', 'constructor', 'prototype', 'toString', 'then', 'toJSON', 'length', '', '0', '_meta', 'uri']

export function oddString(random: Random): string {
  return random.chance(0.85) ? random.pick(STRINGS) : random.pick(STRINGS) + random.pick(STRINGS)
}

export function oddKey(random: Random): string {
  return random.chance(0.7) ? random.pick(KEYS) : oddString(random)
}

export function oddValue(random: Random, depth = 2): Json {
  const kind = random.int(depth > 0 ? 9 : 5)
  if (kind === 0) return random.pick([null, true, false])
  if (kind <= 2) return random.pick(NUMBERS)
  if (kind <= 4) return oddString(random)
  if (kind === 5) return nested(random, random.pick([3, 60, 99, 101, 130, 300]))
  if (kind === 6) return Array.from({ length: random.pick([0, 1, 101, 1_001]) }, () => 1)
  if (kind === 7) return random.list(0, 3, () => oddValue(random, depth - 1))
  return objectOf(random.list(0, 3, () => [oddKey(random), oddValue(random, depth - 1)]))
}

function nested(random: Random, levels: number): Json {
  const isArray = random.chance(0.5)
  let value: Json = 1
  for (let level = 0; level < levels; level += 1) value = isArray ? [value] : { a: value }
  return value
}

/** With each key as its own property, `__proto__` too. */
export function objectOf(entries: readonly (readonly [string, Json])[]): { [key: string]: Json } {
  const object: { [key: string]: Json } = {}
  for (const [key, value] of entries) {
    Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true })
  }
  return object
}

export function isObject(value: unknown): value is { [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

/** Changes one place of a JSON text. What is not JSON is changed as a text. `other` is where pieces may be taken from. */
export function mutateText(random: Random, text: string, other: string): string {
  const value = parsed(text)
  if (value === undefined || random.chance(0.12)) return mutateCharacters(random, text, other)
  if (random.chance(0.1)) return mutateLiteral(random, text)
  try {
    return JSON.stringify(mutateValue(random, value, parsed(other) ?? null))
  } catch {
    // Nested more deeply than can be written again.
    return text
  }
}

/** A copy with one place changed, each place being as likely as any other. */
export function mutateValue(random: Random, value: Json, other: Json): Json {
  if (typeof value !== 'object' || value === null) return mutateHere(random, value, other)
  const entries = Object.entries(value)
  const sizes = entries.map(([key, child]) => (key === 'jsonrpc' ? 0.2 : Math.min(sizeOf(child), MOST_OF_ONE)))
  let left = random.next() * (1 + sizes.reduce((sum, size) => sum + size, 0)) - 1
  const at = sizes.findIndex((size) => (left -= size) < 0 && left + size >= 0)
  const chosen = entries[at]
  if (chosen === undefined) return mutateHere(random, value, other)
  const changed = mutateValue(random, chosen[1], other)
  return Array.isArray(value) ? value.with(at, changed) : objectOf(entries.with(at, [chosen[0], changed]))
}

/** So that a large part, such as `_meta`, does not get nearly all of the changes. */
const MOST_OF_ONE = 6

function sizeOf(value: Json): number {
  if (typeof value !== 'object' || value === null) return 1
  let size = 1
  for (const child of Object.values(value)) {
    size += sizeOf(child)
    if (size >= MOST_OF_ONE) break
  }
  return size
}

function mutateHere(random: Random, value: Json, other: Json): Json {
  const roll = random.int(10)
  if (roll === 0) return [value]
  if (roll === 1) return { [oddKey(random)]: value }
  if (roll === 2) return somewhereIn(random, other)
  if (Array.isArray(value) && roll < 8) return mutateList(random, value)
  if (isObject(value) && roll < 8) return mutateObject(random, value)
  if (typeof value === 'string' && roll < 5) return mutateCharacters(random, value, oddString(random))
  if (typeof value === 'number' && roll < 6) return random.pick([value + 1, -value, value / 2, String(value)])
  return oddValue(random)
}

function mutateList(random: Random, list: Json[]): Json {
  const at = random.int(list.length + 1)
  const roll = random.int(4)
  if (roll === 0) return list.toSpliced(at, 1)
  if (roll === 1) return list.toSpliced(at, 0, oddValue(random))
  if (roll === 2) return [...list, ...list.slice(at)]
  return list.toReversed()
}

function mutateObject(random: Random, object: { [key: string]: Json }): Json {
  const entries = Object.entries(object)
  const at = random.int(entries.length)
  const roll = random.int(4)
  if (roll === 0 || entries.length === 0) return objectOf([...entries, [oddKey(random), oddValue(random)]])
  if (roll === 1) return objectOf(entries.toSpliced(at, 1))
  if (roll === 2) return objectOf(entries.map(([key, child], index) => [index === at ? oddKey(random) : key, child]))
  return objectOf(
    entries.map(([key], index) => [key, entries[index === at ? random.int(entries.length) : index]?.[1] ?? null]),
  )
}

function somewhereIn(random: Random, value: Json): Json {
  if (typeof value !== 'object' || value === null || random.chance(0.3)) return value
  const children = Object.values(value)
  return children.length === 0 ? value : somewhereIn(random, random.pick(children))
}

/** What only a text can say: a key twice, numbers that are not read as they are written, and very deep nesting. */
function mutateLiteral(random: Random, text: string): string {
  if (random.chance(0.5)) {
    const keys = [...text.matchAll(/"(?:[^"\\]|\\.)*":/g)]
    const key = keys.length === 0 ? undefined : random.pick(keys)
    if (key === undefined) return text
    return `${text.slice(0, key.index)}${key[0]}${JSON.stringify(oddValue(random, 1))},${text.slice(key.index)}`
  }
  const numbers = [...text.matchAll(/(?<=[:[,])(?:-?\d[\d.eE+-]*|"[^"\\]*"(?!:)|\{\})/g)]
  const number = numbers.length === 0 ? undefined : random.pick(numbers)
  if (number === undefined) return text
  const levels = random.pick([200, 4_000, 60_000])
  const other = random.pick([
    ...NUMBER_TEXTS,
    '['.repeat(levels) + ']'.repeat(levels),
    '{"a":'.repeat(levels) + '1' + '}'.repeat(levels),
  ])
  return text.slice(0, number.index) + other + text.slice(number.index + number[0].length)
}

export function mutateCharacters(random: Random, text: string, other: string): string {
  const at = random.int(text.length + 1)
  const to = at + random.int(Math.min(20, text.length - at + 1))
  const roll = random.int(7)
  if (roll === 0) return text.slice(0, at)
  if (roll === 1) return text.slice(at)
  if (roll === 2) return text.slice(0, at) + text.slice(to)
  if (roll === 3) return text.slice(0, at) + oddString(random) + text.slice(at)
  if (roll === 4) return text.slice(0, at) + other.slice(random.int(other.length + 1))
  if (roll === 5) return text.slice(0, to) + text.slice(at)
  const code = text.charCodeAt(at) || 0
  return text.slice(0, at) + String.fromCharCode(code ^ (1 << random.int(8))) + text.slice(at + 1)
}
