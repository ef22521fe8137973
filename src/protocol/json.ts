// JSON text of values that JSON keeps whole, and a bound on the depth of values that came as JSON.
import { RallyError } from './errors.ts'

const DEEPEST = 256

/** The JSON text of a value, or an error that names the place in it that JSON would lose. */
export function toJsonText(value: unknown, where: string): string {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return JSON.stringify(value)
  const loss = lossOf(value, 1)
  if (loss) throw new RallyError('NOT_JSON', `${where}: ${pathText(loss.path.toReversed(), '$')} ${loss.why}`)
  return JSON.stringify(value)
}

/**
 * Whether parsed JSON is nested at most `max` deep and holds no number that JavaScript cannot, as 1e999 is. Looks at
 * untrusted values before anything recursive does, and so does not recurse itself.
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

/** Whether a value has at most so many properties and items, at any depth. Does not recurse, and stops as soon as it knows. */
export function withinSize(value: unknown, most: number): boolean {
  const open: unknown[] = [value]
  let left = most
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (typeof node !== 'object' || node === null) continue
    const children: unknown[] = Array.isArray(node) ? node : Object.values(node)
    left -= children.length
    if (left < 0) return false
    for (const child of children) if (typeof child === 'object' && child !== null) open.push(child)
  }
  return true
}

/** Whether a parsed value is a JSON object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What JSON would lose and, from the inside out, where. */
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
        : lost(`is ${value}, which JSON has no number for: use null or a string.`)
    case 'object':
      return value === null ? undefined : lossInside(value, depth)
    case 'bigint':
      return lost('is a BigInt, which JSON does not keep: use a string, or Number() where it is small enough.')
    case 'undefined':
      return lost('is undefined, which JSON has no value for: use null, or leave it out.')
    default:
      return lost(`is a ${typeof value}, which JSON does not keep: leave it out.`)
  }
}

function lossInside(value: object, depth: number): Loss | undefined {
  if (depth > DEEPEST) return lost(`is nested past ${DEEPEST} levels, or refers back to itself: make it flatter.`)
  if (Array.isArray(value)) return lossInArray(value, depth)
  return isPlain(value) ? lossInObject(value, depth) : lost(adviceFor(value))
}

/** A prototype without one of its own is the root of plain objects, of this realm or another. */
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
  // By index, because iteration methods pass over holes, which JSON turns into null.
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
  Date: 'is a Date, which JSON turns into a string: use its toISOString().',
  Map: 'is a Map, which JSON empties: use Object.fromEntries(map), or [...map].',
  Set: 'is a Set, which JSON empties: use [...set].',
  Promise: 'is a Promise, which JSON empties: await it first.',
  RegExp: 'is a RegExp, which JSON empties: use its source.',
  Error: 'is an Error, which JSON empties: use its message.',
}

function adviceFor(value: object): string {
  if (ArrayBuffer.isView(value)) {
    return `is binary data (${nameOf(value)}), which JSON does not keep: use base64, Buffer.from(bytes).toString('base64').`
  }
  // Not `instanceof`: the value may be of another realm.
  const tag = Object.prototype.toString.call(value).slice('[object '.length, -1)
  return (
    (Object.hasOwn(ADVICE, tag) ? ADVICE[tag] : undefined) ??
    `is an instance of ${nameOf(value)}, whose class JSON does not keep: use a plain object, such as { ...value }.`
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
    // A cycle or a hostile key makes a path that nobody reads to its end.
    if (text.length > LONGEST) return `${text.slice(0, LONGEST)}…`
  }
  return text
}

function step(key: PropertyKey, first: boolean): string {
  if (typeof key === 'number') return `[${key}]`
  const name = String(key)
  if (PLAIN.test(name)) return first ? name : `.${name}`
  return `[${JSON.stringify(name)}]`
}
