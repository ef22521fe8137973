// Converts the typed key=value words to arguments, with the types of the tool's input schema.
import { cleanLine } from './clean.ts'
import { UsageError } from './exit.ts'
import { isObject } from '../protocol/json.ts'

type ToolSchema = Readonly<Record<string, unknown>>

/** `words` are `key=value` or `key:=json`. They override `given`. */
export function readArguments(
  words: readonly string[],
  schema: ToolSchema,
  given: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  const read = new Map<string, unknown>(Object.entries(given))
  for (const [key, texts] of grouped(words)) {
    const property = propertyOf(schema, key)
    read.set(key, valueOf(key, texts, property, schema))
  }
  return Object.fromEntries(read)
}

/** The arguments of a prompt are always strings. */
export function readTexts(words: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    Array.from(grouped(words), ([key, typed]): [string, string] => {
      const { text, isJson } = lastOf(typed)
      if (isJson || typed.length > 1) throw new UsageError(`${key}: an argument of a prompt takes one plain text.`)
      return [key, text]
    }),
  )
}

export function readJsonObject(text: string, what: string): Record<string, unknown> {
  const value = readJson(text, what)
  if (!isObject(value)) throw new UsageError(`${what} must be a JSON object, such as '{"env":"prod"}'.`)
  return value
}

/** The types that a value may have, as a person reads them: `integer`, `Active|Closed`. */
export function typeText(schema: unknown, root: ToolSchema): string {
  const { types, values } = shapeOf(schema, root)
  if (values.length > 0) return values.map((value) => (typeof value === 'string' ? value : json(value))).join('|')
  return types.size === 0 ? 'any' : [...types].join('|')
}

interface TypedValue {
  readonly text: string
  readonly isJson: boolean
}

function grouped(words: readonly string[]): Map<string, TypedValue[]> {
  const byKey = new Map<string, TypedValue[]>()
  for (const word of words) {
    const at = word.indexOf('=')
    const isJson = word[at - 1] === ':'
    const key = word.slice(0, isJson ? at - 1 : at)
    if (at < 0 || key === '') {
      throw new UsageError(`${quoted(word)} is not an argument. Write key=value, or key:=json for a JSON value.`)
    }
    byKey.set(key, [...(byKey.get(key) ?? []), { text: word.slice(at + 1), isJson }])
  }
  return byKey
}

function valueOf(key: string, typed: readonly TypedValue[], schema: unknown, root: ToolSchema): unknown {
  const { text, isJson } = lastOf(typed)
  const { types, items } = shapeOf(schema, root)
  const isList = types.has('array') && !types.has('string')
  if (typed.length > 1 && !isList) throw new UsageError(`${key} is given ${typed.length} times, but is not a list.`)
  if (isJson && typed.length === 1) return fitting(key, readJson(text, `${key}:=`), types)
  if (!isList) return converted(key, text, schema, root)
  if (typed.length === 1 && text.trimStart().startsWith('[')) return readJson(text, key)
  return typed.map((each) => (each.isJson ? readJson(each.text, key) : converted(key, each.text, items, root)))
}

/** Checks a JSON value by its type, which is what is mistyped most. The server checks the rest. */
function fitting(key: string, value: unknown, types: ReadonlySet<string>): unknown {
  const type = typeName(value)
  if (types.size === 0 || types.has(type)) return value
  if (type === 'number' && types.has('integer') && Number.isInteger(value)) return value
  throw wrongType(key, types, json(value))
}

function wrongType(key: string, types: ReadonlySet<string>, got: string): UsageError {
  const wanted = [...types].map((type) => NAMES[type] ?? type).join(' or ')
  const example = [...types].map((type) => EXAMPLES[type]).find((each) => each !== undefined)
  const hint = example === undefined ? '' : ` Write it as ${key}:='${example}'.`
  return new UsageError(`${key} takes ${wanted}, not ${quoted(got)}.${hint}`)
}

/** Of types that are written as JSON. */
const EXAMPLES: Readonly<Record<string, string>> = { array: '["a","b"]', object: '{"a":1}' }

/** A value stays a string if the schema accepts one. `key:=json` overrides that. */
function converted(key: string, text: string, schema: unknown, root: ToolSchema): unknown {
  const { types, values } = shapeOf(schema, root)
  if (types.has('string') || types.size === 0) return text
  const listed = values.find((value) => json(value) === text)
  if (listed !== undefined) return listed
  for (const type of types) {
    const value = CONVERSIONS[type]?.(text)
    if (value !== undefined) return value
  }
  throw wrongType(key, types, text)
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i

const CONVERSIONS: Readonly<Record<string, (text: string) => unknown>> = {
  integer: (text) => whole(readNumber(text)),
  number: readNumber,
  boolean: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
  null: (text) => (text === 'null' ? null : undefined),
  object: (text) => parsed(text, isObject),
  array: (text) => parsed(text, Array.isArray),
}

const NAMES: Readonly<Record<string, string>> = {
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  null: 'null',
  object: 'a JSON object',
  array: 'a JSON list',
}

/** The number, or undefined if the text is not one. */
export function readNumber(text: string): number | undefined {
  const value = Number(text)
  return NUMBER.test(text.trim()) && Number.isFinite(value) ? value : undefined
}

function whole(value: number | undefined): number | undefined {
  return Number.isInteger(value) ? value : undefined
}

function parsed(text: string, fits: (value: unknown) => boolean): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return fits(value) ? value : undefined
  } catch {
    return undefined
  }
}

function readJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new UsageError(
      `${what} is not valid JSON: ${quoted(text)}. Put it in single quotes, so that the shell leaves it as it is: '["a","b"]', '{"a":1}'.`,
    )
  }
}

interface Shape {
  readonly types: Set<string>
  /** The allowed values, if the schema lists them. */
  readonly values: readonly unknown[]
  readonly items: unknown
}

const DEEPEST = 10
const MOST_STEPS = 1_000

/**
 * The types of a schema, including those of unions and local references. The schema is untrusted: a few references in
 * unions could stand for any number of schemas, so those past the limit are left out.
 */
function shapeOf(schema: unknown, root: ToolSchema, depth = 0, steps = { left: MOST_STEPS }): Shape {
  const none = { types: new Set<string>(), values: [], items: undefined }
  steps.left -= 1
  if (!isObject(schema) || depth > DEEPEST || steps.left < 0) return none
  const { $ref, type, enum: options, const: only, items } = schema
  if (typeof $ref === 'string') return shapeOf(referred($ref, root), root, depth + 1, steps)
  const values: unknown[] = Array.isArray(options) ? options : only === undefined ? [] : [only]
  const types = [type].flat().filter((each) => typeof each === 'string')
  const parts = [schema['anyOf'], schema['oneOf'], schema['allOf']]
    .flatMap((members) => (Array.isArray(members) ? (members as unknown[]) : []))
    .map((member) => shapeOf(member, root, depth + 1, steps))
  return {
    types: new Set([...(types.length > 0 ? types : values.map(typeName)), ...parts.flatMap((part) => [...part.types])]),
    values: [...values, ...parts.flatMap((part) => part.values)],
    items: items ?? parts.find((part) => part.items !== undefined)?.items,
  }
}

function propertyOf(schema: ToolSchema, key: string): unknown {
  const { properties, additionalProperties } = schema
  if (isObject(properties) && Object.hasOwn(properties, key)) return properties[key]
  return additionalProperties
}

/** What a reference within the schema refers to. */
export function referred(ref: string, root: ToolSchema): unknown {
  const [start, ...keys] = ref.split('/').map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  if (start !== '#') return undefined
  let found: unknown = root
  for (const key of keys) found = isObject(found) && Object.hasOwn(found, key) ? found[key] : undefined
  return found
}

function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value
}

function lastOf(typed: readonly TypedValue[]): TypedValue {
  return typed.at(-1) ?? { text: '', isJson: false }
}

function json(value: unknown): string {
  return JSON.stringify(value) ?? ''
}

function quoted(text: string): string {
  return `"${cleanLine(text, 80)}"`
}
