// Equal JSON values have equal texts, whatever the order of their keys (RFC 8785). Also the digest of such a text.

import { hash } from 'node:crypto'
import { RallyError } from '../protocol/errors.ts'

/**
 * Returns the canonical text of a parsed JSON value. An undefined property counts as absent. Throws `TOO_DEEP` past 128
 * levels, and `NOT_JSON` for a value that JSON cannot represent, such as the infinity that `JSON.parse` makes of `1e999`.
 */
export function canonical(value: unknown): string {
  return write(value, 0)
}

/** 132 bits of SHA-256, as 22 characters of base64url. */
export function digest(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, 22)
}

const maxDepth = 128

function write(value: unknown, depth: number): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value)
    case 'number':
      if (Object.is(value, -0)) return '-0'
      if (Number.isFinite(value)) return String(value)
      break
    case 'boolean':
      return value ? 'true' : 'false'
    case 'object':
      if (value === null) return 'null'
      if (depth === maxDepth) throw new RallyError('TOO_DEEP', `The value is nested deeper than ${maxDepth} levels.`)
      return Array.isArray(value) ? writeArray(value, depth + 1) : writeObject(value, depth + 1)
  }
  throw new RallyError('NOT_JSON', `JSON cannot represent a ${typeof value} (${String(value)}).`)
}

function writeObject(object: object, depth: number): string {
  let text = '{'
  // By UTF-16 code units: the default order, and the one that RFC 8785 requires.
  const keys = Object.keys(object)
  if (keys.length > 1) keys.sort()
  for (const key of keys) {
    const value: unknown = Reflect.get(object, key)
    if (value === undefined) continue
    if (text !== '{') text += ','
    text += `${JSON.stringify(key)}:${write(value, depth)}`
  }
  return `${text}}`
}

function writeArray(values: readonly unknown[], depth: number): string {
  let text = '['
  for (let index = 0; index < values.length; index++) {
    if (index > 0) text += ','
    text += write(values[index], depth)
  }
  return `${text}]`
}
