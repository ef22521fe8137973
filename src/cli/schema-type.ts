// Writes a JSON Schema as a TypeScript type. The schema is untrusted:
//
// - Every name, value and text is escaped, so none of it can end a string, a comment or the type.
// - Depth, width and the number of types are bounded. What is beyond them, or not expressible, is `unknown`.
// - A type may refer to itself only inside an object or an array: TypeScript refuses `type A = A | string`.
import { isObject } from '../protocol/json.ts'
import { referred } from './arguments.ts'
import { clean, cleanJson } from './clean.ts'

/** Types of one file. */
const MAX_TYPES = 20_000
const MAX_DEPTH = 30
/** A union or tuple with more members is `unknown`. TypeScript compares the members of unions with each other. */
const MAX_MEMBERS = 500
const MAX_DOC_LENGTH = 2_000

type JsonSchema = Readonly<Record<string, unknown>>

/** A type as text. A union or an intersection needs parentheses where another operator follows. */
interface TypeText {
  readonly text: string
  readonly isCompound?: boolean
}

/** Where in the file a type is written. */
interface Place {
  readonly indent: string
  readonly depth: number
  /** References that were followed since the last object or array. Inside of one, a reference is a name. */
  readonly followed: readonly string[] | undefined
}

const UNKNOWN: TypeText = { text: 'unknown' }

/** The types of a file: a declaration for each schema that is referred to, and how many more types may be written. */
export class TypeFile {
  readonly declarations: string[] = []
  /** How often each name was wanted. */
  readonly #names = new Map([
    ['Server', 1],
    ['ServerTypes', 1],
    ['Tools', 1],
  ])
  #left = MAX_TYPES

  /** The type of a whole schema. `name` begins the names of the schemas that it refers to. */
  typeOf(root: JsonSchema, name: string, indent: string): string {
    return new SchemaWriter(this, root, name).writeAll(indent)
  }

  /** False if the file has as many types as it may have. */
  takeOne(): boolean {
    this.#left -= 1
    return this.#left >= 0
  }

  /** A name that is free in this file. */
  newName(...words: readonly string[]): string {
    const parts = words.flatMap((word) => word.slice(0, 100).match(/[A-Za-z0-9]+/g) ?? [])
    const camel = parts.map((part) => part.charAt(0).toUpperCase() + part.slice(1)).join('')
    const wanted = /^[A-Z]/.test(camel) ? camel : `Type${camel}`
    const count = (this.#names.get(wanted) ?? 0) + 1
    this.#names.set(wanted, count)
    // No name from `camel` has an underscore.
    return count === 1 ? wanted : `${wanted}_${count}`
  }
}

/** A doc comment in front of a member, or nothing. */
export function docOf(texts: readonly unknown[], indent: string, isDeprecated = false): string {
  const said = texts.filter((text) => typeof text === 'string' && text.trim() !== '').map((text) => docText(text))
  if (isDeprecated) said.push('@deprecated')
  const lines = said.flatMap((text) => text.split('\n'))
  if (lines.length === 0) return ''
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`
  return [`${indent}/**`, ...lines.map((line) => `${indent} * ${line}`.trimEnd()), `${indent} */\n`].join('\n')
}

/** `@ts-ignore` in a comment would be obeyed. */
function docText(text: unknown): string {
  return clean(text, MAX_DOC_LENGTH)
    .trim()
    .replaceAll('*/', '*\\/')
    .replaceAll(/@(?=ts-)/gi, '@ ')
}

/** The name of a member, quoted if it must be. */
export function memberName(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : cleanJson(name)
}

class SchemaWriter {
  readonly #file: TypeFile
  readonly #root: JsonSchema
  readonly #name: string
  /** The names of declarations, by reference. */
  readonly #declared = new Map<string, string>()
  /** The references whose declarations are not written yet: a chain of them may be long. */
  readonly #pending: { readonly $ref: string; readonly name: string; readonly target: JsonSchema }[] = []

  constructor(file: TypeFile, root: JsonSchema, name: string) {
    this.#file = file
    this.#root = root
    this.#name = name
  }

  /** Also writes the declarations of what the schema refers to. */
  writeAll(indent: string): string {
    const whole = this.#write(this.#root, { indent, depth: 0, followed: undefined })
    for (let next = this.#pending.pop(); next !== undefined; next = this.#pending.pop()) {
      const { $ref, name, target } = next
      const { text } = this.#write(target, { indent: '', depth: 0, followed: [$ref] })
      this.#file.declarations.push(`${docOf([target['description']], '')}type ${name} = ${text}`)
    }
    return whole.text
  }

  #write(schema: unknown, place: Place): TypeText {
    if (schema === false) return { text: 'never' }
    if (!isObject(schema) || place.depth > MAX_DEPTH || !this.#file.takeOne()) return UNKNOWN
    const { $ref, allOf, anyOf, oneOf, nullable } = schema
    const whole = intersection([
      ...(typeof $ref === 'string' ? [this.#reference($ref, place)] : []),
      ...members(allOf).map((member) => this.#write(member, deeper(place))),
      ...[anyOf, oneOf].filter(Array.isArray).map((list) => this.#union(list, place)),
      this.#own(schema, place),
    ])
    return nullable === true ? union([whole, { text: 'null' }]) : whole
  }

  #union(list: readonly unknown[], place: Place): TypeText {
    if (list.length > MAX_MEMBERS) return UNKNOWN
    return union(list.map((member) => this.#write(member, deeper(place))))
  }

  /** A name inside of an object or array, and otherwise the type itself. */
  #reference($ref: string, place: Place): TypeText {
    const target = referred($ref, this.#root)
    if (!isObject(target)) return UNKNOWN
    const { followed } = place
    if (followed !== undefined) {
      return followed.includes($ref)
        ? UNKNOWN
        : this.#write(target, deeper({ ...place, followed: [...followed, $ref] }))
    }
    const declared = this.#declared.get($ref)
    if (declared !== undefined) return { text: declared }
    const name = this.#file.newName(this.#name, $ref === '#' ? '' : ($ref.split('/').at(-1) ?? ''))
    this.#declared.set($ref, name)
    this.#pending.push({ $ref, name, target })
    return { text: name }
  }

  /** What the schema says itself, without what it combines. */
  #own(schema: JsonSchema, place: Place): TypeText {
    if ('const' in schema) return literal(schema['const'], 0)
    if (Array.isArray(schema['enum'])) return literals(schema['enum'])
    return union(typesOf(schema).map((type) => this.#ofType(type, schema, place)))
  }

  #ofType(type: unknown, schema: JsonSchema, place: Place): TypeText {
    switch (type) {
      case 'string':
      case 'number':
      case 'boolean':
      case 'null':
        return { text: type }
      case 'integer':
        return { text: 'number' }
      case 'array':
        return this.#array(schema, { ...deeper(place), followed: undefined })
      case 'object':
        return this.#object(schema, { ...deeper(place), followed: undefined })
      default:
        return UNKNOWN
    }
  }

  /** Before 2020-12, the types of a tuple were in `items`, and the rest in `additionalItems`. */
  #array({ items, prefixItems, additionalItems, minItems }: JsonSchema, place: Place): TypeText {
    const first = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : []
    const others = first === items ? additionalItems : items
    if (first.length > MAX_MEMBERS) return { text: 'unknown[]' }
    const rest = others === false ? undefined : arrayOf(this.#write(others ?? {}, place))
    if (first.length === 0) return { text: rest ?? '[]' }
    const required = typeof minItems === 'number' ? minItems : 0
    const types = first.map((item, index) => {
      const type = this.#write(item, place)
      return index < required ? type.text : `${parenthesized(type)}?`
    })
    return { text: `[${[...types, ...(rest === undefined ? [] : [`...${rest}`])].join(', ')}]` }
  }

  #object(schema: JsonSchema, place: Place): TypeText {
    const properties = isObject(schema['properties']) ? schema['properties'] : {}
    const required = new Set(members(schema['required']).filter((name) => typeof name === 'string'))
    const names = [...new Set([...Object.keys(properties), ...required])]
    const inner = { ...place, indent: `${place.indent}  ` }
    const lines = names.map((name) => {
      const property = Object.hasOwn(properties, name) ? properties[name] : true
      const { description, deprecated } = isObject(property) ? property : {}
      const doc = docOf([description], inner.indent, deprecated === true)
      const mark = required.has(name) ? '' : '?'
      return `${doc}${inner.indent}${memberName(name)}${mark}: ${this.#write(property, inner).text}`
    })
    const others = this.#otherMembers(schema, names.length > 0, inner)
    if (others !== undefined) lines.push(`${inner.indent}[key: string]: ${others}`)
    return { text: `{\n${lines.join('\n')}\n${place.indent}}` }
  }

  /** Members without a name in the schema. TypeScript wants a type that all named members have as well. */
  #otherMembers(schema: JsonSchema, hasNames: boolean, place: Place): string | undefined {
    const { additionalProperties: others, patternProperties } = schema
    const patterns = isObject(patternProperties) ? Object.values(patternProperties) : []
    if (hasNames) return others === true || isObject(others) || patterns.length > 0 ? 'unknown' : undefined
    if (patterns.length > 0) return others === false ? this.#union(patterns, place).text : 'unknown'
    return this.#write(others ?? true, place).text
  }
}

function deeper(place: Place): Place {
  return { ...place, depth: place.depth + 1 }
}

/** A schema that lists properties and no type means an object, although it allows other values. */
function typesOf(schema: JsonSchema): readonly unknown[] {
  const { type, properties, required, additionalProperties, items, prefixItems } = schema
  if (Array.isArray(type)) return type.length > MAX_MEMBERS ? [undefined] : (type as unknown[])
  if (type !== undefined) return [type]
  if (isObject(properties) || Array.isArray(required) || isObject(additionalProperties)) return ['object']
  return isObject(items) || Array.isArray(prefixItems) ? ['array'] : [undefined]
}

function members(list: unknown): readonly unknown[] {
  return Array.isArray(list) ? list.slice(0, MAX_MEMBERS) : []
}

/** Long lists are only their types: the server checks the values. */
function literals(values: readonly unknown[]): TypeText {
  if (values.length <= MAX_MEMBERS) return union(values.map((value) => literal(value, 0)))
  const types = [...new Set(values.map((value) => typeof value))]
  return types.includes('object') ? UNKNOWN : union(types.map((text) => ({ text })))
}

function literal(value: unknown, depth: number): TypeText {
  if (depth > 5) return UNKNOWN
  if (Array.isArray(value)) {
    if (value.length > MAX_MEMBERS) return { text: 'unknown[]' }
    return { text: `[${value.map((item) => literal(item, depth + 1).text).join(', ')}]` }
  }
  if (isObject(value)) {
    const entries = Object.entries(value)
    if (entries.length > MAX_MEMBERS) return UNKNOWN
    return {
      text: `{ ${entries.map(([key, each]) => `${memberName(key)}: ${literal(each, depth + 1).text}`).join('; ')} }`,
    }
  }
  return { text: cleanJson(value) }
}

function arrayOf(type: TypeText): string {
  return `${parenthesized(type)}[]`
}

function parenthesized({ text, isCompound }: TypeText): string {
  return isCompound === true ? `(${text})` : text
}

function union(types: readonly TypeText[]): TypeText {
  if (types.some(({ text }) => text === 'unknown')) return UNKNOWN
  return joined(types, '|') ?? { text: 'never' }
}

function intersection(types: readonly TypeText[]): TypeText {
  return (
    joined(
      types.filter(({ text }) => text !== 'unknown'),
      '&',
    ) ?? UNKNOWN
  )
}

/** Joins the types, each text once. Returns `undefined` for an empty list. */
function joined(types: readonly TypeText[], operator: '|' | '&'): TypeText | undefined {
  const [first, ...others] = new Map(types.map((type) => [type.text, type])).values()
  if (first === undefined || others.length === 0) return first
  return { text: [first, ...others].map(parenthesized).join(` ${operator} `), isCompound: true }
}
