// Writes JSON without losing anything, and limits the depth and size of parsed JSON.
import { RallyError } from './errors.ts'
import { cut } from './text.ts'

const DEEPEST = 256

/** The JSON text of a value. Throws NOT_JSON, naming the path of a value that JSON would lose or change. */
export function toJsonText(value: unknown, where: string): string {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return JSON.stringify(value)
  assertJson(value, where)
  return JSON.stringify(value)
}

/** Throws an error that names the place in a value that JSON would lose. */
export function assertJson(value: unknown, where: string): void {
  const loss = lossOf(value, 1)
  if (loss) throw new RallyError('NOT_JSON', `${where}: ${pathText(loss.path.toReversed(), '$')} ${loss.why}`)
}

/**
 * True if parsed JSON is nested at most `max` levels deep and all its numbers are finite (1e999 parses as Infinity).
 * It checks untrusted values before recursive code sees them, so it does not recurse itself.
 */
export function isTame(value: unknown, max: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (max < 1) return false
  const open: object[] = [value]
  const depths = [1]
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const depth = depths.pop() ?? 0
    for (const child of Array.isArray(node) ? node : Object.values(node)) {
      if (child === Infinity || child === -Infinity) return false
      if (typeof child !== 'object' || child === null) continue
      if (depth >= max) return false
      open.push(child)
      depths.push(depth + 1)
    }
  }
  return true
}

/** A copy of a JSON value that nobody can change. */
export function frozenCopy<T>(value: T): T {
  return frozen(value) as T
}

function frozen(value: unknown): unknown {
  if (Array.isArray(value)) return Object.freeze(value.map(frozen))
  if (!isObject(value)) return value
  return Object.freeze(Object.fromEntries(Object.entries(value).map(([key, member]) => [key, frozen(member)])))
}

/** True if a value has at most `most` properties and items at all depths. Does not recurse, and stops early. */
export function withinSize(value: unknown, most: number): boolean {
  return sizeUpTo(value, most) <= most
}

/** The number of properties and items of a value at all depths. Stops early, at a number above `most`. */
export function sizeUpTo(value: unknown, most: number): number {
  const open: unknown[] = [value]
  let size = 0
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (typeof node !== 'object' || node === null) continue
    const children: unknown[] = Array.isArray(node) ? node : Object.values(node)
    size += children.length
    if (size > most) return size
    for (const child of children) if (typeof child === 'object' && child !== null) open.push(child)
  }
  return size
}

/** True if a parsed value is a JSON object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A value that JSON would lose, and its path from the inside out. */
interface Loss {
  why: string
  path: PropertyKey[]
}

function lossOf(value: unknown, depth: number): Loss | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return undefined
    case 'number':
      return Number.isFinite(value)
        ? undefined
        : lost(`is ${value}, which is not a number in JSON. Use null or a string.`)
    case 'object':
      return value === null ? undefined : lossInside(value, depth)
    case 'bigint':
      return lost('is a BigInt, which JSON does not have. Use a string, or Number() if it is small enough.')
    case 'undefined':
      return lost('is undefined, which JSON does not have. Use null, or leave it out.')
    default:
      return lost(`is a ${typeof value}, which JSON does not have. Leave it out.`)
  }
}

function lossInside(value: object, depth: number): Loss | undefined {
  if (depth > DEEPEST) return lost(`is nested past ${DEEPEST} levels, or refers back to itself. Make it flatter.`)
  if (Array.isArray(value)) return lossInArray(value, depth)
  return isPlain(value) ? lossInObject(value, depth) : lost(adviceFor(value))
}

/** A plain object has no prototype, or one without a prototype: Object.prototype of this realm or another. */
function isPlain(value: object): value is Record<string, unknown> {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

function lossInObject(value: Record<string, unknown>, depth: number): Loss | undefined {
  for (const key of Object.keys(value)) {
    const child = value[key]
    if (child === undefined) continue
    const loss = lossOf(child, depth + 1)
    if (loss) return within(loss, key)
  }
  return undefined
}

function lossInArray(items: readonly unknown[], depth: number): Loss | undefined {
  // By index: iteration methods skip holes, which JSON turns into null.
  for (let index = 0; index < items.length; index++) {
    const loss = lossOf(items[index], depth + 1)
    if (loss) return within(loss, index)
  }
  return undefined
}

function lost(why: string): Loss {
  return { why, path: [] }
}

function within(loss: Loss, key: PropertyKey): Loss {
  loss.path.push(key)
  return loss
}

const ADVICE: Readonly<Record<string, string>> = {
  Date: 'is a Date, which JSON turns into a string. Use its toISOString().',
  Map: 'is a Map, which JSON empties. Use Object.fromEntries(map), or [...map].',
  Set: 'is a Set, which JSON empties. Use [...set].',
  Promise: 'is a Promise, which JSON empties. Await it first.',
  RegExp: 'is a RegExp, which JSON empties. Use its source.',
  Error: 'is an Error, which JSON empties. Use its message.',
}

function adviceFor(value: object): string {
  if (ArrayBuffer.isView(value)) {
    return `is binary data (${nameOf(value)}), which JSON does not have. Use base64: Buffer.from(bytes).toString('base64').`
  }
  // Not `instanceof`: the value may come from another realm.
  const tag = Object.prototype.toString.call(value).slice('[object '.length, -1)
  return (
    (Object.hasOwn(ADVICE, tag) ? ADVICE[tag] : undefined) ??
    `is an instance of ${nameOf(value)}, whose class JSON drops. Use a plain object, such as { ...value }.`
  )
}

function nameOf(value: object): string {
  const { constructor } = value
  return typeof constructor === 'function' && constructor.name !== '' ? constructor.name : 'an unnamed class'
}

const PLAIN = /^[A-Za-z_$][\w$]*$/
const LONGEST = 200

/** `['items', 3, 'when']` as `items[3].when`; with a root such as `$`, as `$.items[3].when`. */
export function pathText(keys: readonly PropertyKey[], root = ''): string {
  let text = root
  for (const key of keys) {
    text += step(key, text === '')
    // A cycle or a hostile key can make the path very long.
    if (text.length > LONGEST) return cut(text, LONGEST)
  }
  return text
}

function step(key: PropertyKey, first: boolean): string {
  if (typeof key === 'number') return `[${key}]`
  const name = String(key)
  if (PLAIN.test(name)) return first ? name : `.${name}`
  return `[${JSON.stringify(name)}]`
}
