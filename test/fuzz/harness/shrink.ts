// Makes an input smaller as long as the same thing goes wrong with it.
import type { Json } from './json.ts'
import { objectOf, parsed } from './json.ts'

export interface ShrinkLimits {
  readonly tries: number
  readonly ms: number
}

export async function shrink(
  input: Json,
  stillFails: (smaller: Json) => Promise<boolean>,
  { tries, ms }: ShrinkLimits,
): Promise<Json> {
  const end = Date.now() + ms
  let smallest = input
  let left = tries
  for (let found = true; found;) {
    found = false
    for (const smaller of smallerThan(smallest)) {
      if (left <= 0 || Date.now() > end) return smallest
      left -= 1
      if (!(await stillFails(smaller))) continue
      smallest = smaller
      found = true
      break
    }
  }
  return smallest
}

/**
 * Copies with a part left out or made simpler, those that leave out most first. The properties of an input are its target's
 * own, and stay; those in its texts are left out one by one.
 */
function* smallerThan(value: Json, isInText = false): Generator<Json> {
  if (typeof value === 'string') yield* shorterTexts(value)
  else if (Array.isArray(value)) {
    for (let size = value.length; size >= 1; size = Math.floor(size / 2)) {
      for (let at = 0; at < value.length; at += size) yield value.toSpliced(at, size)
    }
    for (const [index, child] of value.entries()) {
      for (const smaller of smallerThan(child, isInText)) yield value.with(index, smaller)
    }
  } else if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value)
    if (isInText) for (const at of entries.keys()) yield objectOf(entries.toSpliced(at, 1))
    for (const [at, [key, child]] of entries.entries()) {
      for (const smaller of smallerThan(child, isInText)) yield objectOf(entries.with(at, [key, smaller]))
    }
  } else if (typeof value === 'number' && value !== 0) yield 0
}

/** A text that is JSON is made smaller as what it says. */
function* shorterTexts(text: string): Generator<Json> {
  if (text === '') return
  const value = isDeep(text) ? undefined : parsed(text)
  if (typeof value === 'object' && value !== null) {
    for (const smaller of smallerThan(value, true)) yield JSON.stringify(smaller)
    return
  }
  yield ''
  // A short one is more likely a name.
  if (text.length <= 8) return
  for (let size = Math.ceil(text.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let at = 0; at < text.length; at += size) yield text.slice(0, at) + text.slice(at + size)
  }
}

/** Past this depth, taking a value apart and writing it again would overflow the stack. Then it is made smaller as a plain text. */
const DEEP = 500

function isDeep(text: string): boolean {
  let depth = 0
  for (const char of text) {
    if (char === '[' || char === '{') depth += 1
    else if (char === ']' || char === '}') depth -= 1
    if (depth > DEEP) return true
  }
  return false
}
