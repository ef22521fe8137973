// One text for one JSON value, whatever the order of its keys (RFC 8785), and the digest that stands for such a text.

import { hash } from 'node:crypto'
import { RallyError } from '../protocol/errors.ts'

/**
 * The canonical text of a parsed JSON value. Past 128 levels it is a `TOO_DEEP`; what JSON can not say is a `NOT_JSON`,
 * and that includes the infinity that `JSON.parse` makes of `1e999`. An undefined property counts as absent.
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
      if (Number.isFinite(value)) return String(value)
      break
    case 'boolean':
      return value ? 'true' : 'false'
    case 'object':
      if (value === null) return 'null'
      if (depth === maxDepth) throw new RallyError('TOO_DEEP', `The value is nested more than ${maxDepth} levels deep.`)
      return Array.isArray(value) ? writeArray(value, depth + 1) : writeObject(value, depth + 1)
  }
  throw new RallyError('NOT_JSON', `A ${typeof value} (${String(value)}) has no form in JSON.`)
}

function writeObject(object: object, depth: number): string {
  let text = '{'
  // By UTF-16 code units: the default order, and the one that RFC 8785 asks for.
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
