// RFC 6570 URI templates in reverse: finds the values with which a template expands to a given URI.
import { RallyError } from '../protocol/errors.ts'
import { UriPattern } from './uri-pattern.ts'

/** The values of a template's variables in a URI, decoded. They are untrusted: a path in them may lead anywhere. */
export type TemplateVariables<Template extends string> = string extends Template
  ? Readonly<Record<string, string | string[] | undefined>>
  : Readonly<Flat<Expressions<Template>>>

/** `{a}` and `{+a}` are always present. Variables of the other operators may be missing. */
type Expressions<Template extends string> = Template extends `${string}{${infer Expression}}${infer Rest}`
  ? Expression extends `${'#' | '.' | '/' | ';' | '?' | '&'}${infer Names}`
    ? Partial<Named<Names>> & Expressions<Rest>
    : Named<Expression extends `+${infer Names}` ? Names : Expression> & Expressions<Rest>
  : unknown

type Named<Names extends string> = Names extends `${infer First},${infer Rest}`
  ? Variable<First> & Named<Rest>
  : Variable<Names>

type Variable<Name extends string> = Name extends `${infer Exploded}*`
  ? Record<Exploded, string[]>
  : Name extends `${infer Short}:${string}`
    ? Record<Short, string>
    : Record<Name, string>

type Flat<T> = { [K in keyof T]: T[K] }

interface VariableSpec {
  readonly index: number
  readonly name: string
  /** `*`: a list, with each item separate. */
  readonly exploded: boolean
  /** `:3`: at most this many characters. */
  readonly longest: number | undefined
}

interface Operator {
  /** Precedes the first value. Its presence shows that the expression is present at all. */
  readonly prefix: string
  readonly separator: string
  /** Values follow their names, so they may come in any order. */
  readonly named: boolean
  readonly allowed: string
}

/** As RFC 3986 has them, with the marks of RFC 2396, which `encodeURIComponent` leaves as they are. */
const PLAIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!'()*"
const ANY = `${PLAIN}:/?#[]@$&+,;=`

const OPERATORS: Readonly<Record<string, Operator>> = {
  '': { prefix: '', separator: ',', named: false, allowed: PLAIN },
  '+': { prefix: '', separator: ',', named: false, allowed: ANY },
  '#': { prefix: '#', separator: ',', named: false, allowed: ANY },
  '.': { prefix: '.', separator: '.', named: false, allowed: `${PLAIN},` },
  '/': { prefix: '/', separator: '/', named: false, allowed: `${PLAIN},` },
  ';': { prefix: ';', separator: ';', named: true, allowed: `${PLAIN},` },
  '?': { prefix: '?', separator: '&', named: true, allowed: `${PLAIN},` },
  '&': { prefix: '&', separator: '&', named: true, allowed: `${PLAIN},` },
}

const PART = /\{([+#./;?&]?)([^{}]*)\}|[^{}]+/g
const VARIABLE = /^((?:\w|%[0-9A-Fa-f]{2})(?:\.?(?:\w|%[0-9A-Fa-f]{2}))*)(?:(\*)|:([1-9]\d{0,3}))?$/
const NOT_IN_URIS = /[^\w.~:/?#[\]@!$&'()*+,;=%-]|%(?![0-9A-Fa-f]{2})/
const NOT_LITERAL = /[\0-\x20"<>\\^`|\x7f\p{Cs}]|%(?![0-9A-Fa-f]{2})/u

export class UriTemplate {
  readonly names: readonly string[]
  readonly #variables: VariableSpec[] = []
  readonly #pattern = new UriPattern()
  readonly #start: number

  constructor(template: string) {
    if (typeof template !== 'string') throw invalid(template, 'it must be a string')
    const parts = [...template.matchAll(PART)]
    if (parts.map(([part]) => part).join('') !== template) throw invalid(template, 'a brace has no counterpart')
    // Read from the beginning, because the order matters. Built from the end, because each part continues with the next.
    const builders = parts.map(([part, operator, list]) =>
      list === undefined ? this.#literal(template, part) : this.#expression(template, operator ?? '', list),
    )
    this.#start = builders.reduceRight((next, build) => build(next), this.#pattern.end)
    this.names = this.#variables.map(({ name }) => name)
    if (this.names.length === 0) throw invalid(template, 'it has no variable; use app.resource for a fixed URI')
  }

  /** Takes any text that a caller sent. Returns `undefined` when it is not a URI of this template. */
  match(uri: string): Record<string, string | string[]> | undefined {
    if (NOT_IN_URIS.test(uri)) return undefined
    const normal = upperEscapes(uri)
    const captures = this.#pattern.run(this.#start, normal)
    if (captures === undefined) return undefined
    const values: Record<string, string | string[]> = {}
    for (const { variable, from, to } of captures) {
      const value = decoded(normal.slice(from, to))
      const { name, exploded, longest } = this.#variables[variable] as VariableSpec
      if (value === undefined || (longest !== undefined && Array.from(value).length > longest)) return undefined
      const before = Object.hasOwn(values, name) ? values[name] : undefined
      if (Array.isArray(before)) before.push(value)
      else if (before === undefined) values[name] = exploded ? [value] : value
      else return undefined
    }
    return values
  }

  #literal(template: string, text: string): (next: number) => number {
    if (NOT_LITERAL.test(text)) throw invalid(template, 'it contains a character that a URI cannot have')
    const escaped = upperEscapes(text.replaceAll(/[^\0-\x7f]+/g, encodeURIComponent))
    return (next) => this.#pattern.text(escaped, next)
  }

  #expression(template: string, operator: string, list: string): (next: number) => number {
    const variables = list.split(',').map((specification) => this.#declare(template, specification))
    const { [operator]: how } = OPERATORS
    if (how === undefined) throw invalid(template, `"${operator}" is not an operator`)
    return (next) => (how.named ? this.#pairs(variables, how, next) : this.#values(variables, how, next))
  }

  #declare(template: string, specification: string): VariableSpec {
    const [, name, star, longest] = VARIABLE.exec(specification) ?? []
    if (name === undefined || name === '__proto__') throw invalid(template, `"${specification}" is not a variable`)
    if (this.#variables.some((variable) => variable.name === name)) throw invalid(template, `it has "${name}" twice`)
    const index = this.#variables.length
    const variable = {
      index,
      name,
      exploded: star !== undefined,
      longest: longest === undefined ? undefined : Number(longest),
    }
    this.#variables.push(variable)
    return variable
  }

  /** Values one after the other: the first is for the first variable, and those at the end may be missing. */
  #values(variables: readonly VariableSpec[], { prefix, separator, allowed }: Operator, next: number): number {
    const pattern = this.#pattern
    const required = prefix === ''
    // The separator splits several values. A single value may contain it.
    const several = variables.length > 1 || variables.some(({ exploded }) => exploded)
    const chars = several ? allowed.replace(separator, '') : allowed
    const last = variables.length - 1
    const from = variables.reduceRight((rest, { index, exploded }, position) => {
      const others = position === last ? rest : pattern.text(separator, rest)
      const after = position === last || required ? others : pattern.either(others, next)
      const value = (then: number): number => pattern.value(index, chars, !required, then)
      return exploded ? pattern.list(separator, value, after) : value(after)
    }, next)
    return required ? from : pattern.either(pattern.text(prefix, from), next)
  }

  /** Names with their values, each of which may be missing. A name alone has the empty value. */
  #pairs(variables: readonly VariableSpec[], { prefix, separator, allowed }: Operator, next: number): number {
    const pattern = this.#pattern
    const pair = (more: number): number =>
      variables
        .map(({ index, name }) => {
          const given = pattern.text('=', pattern.value(index, allowed, true, more))
          const alone = pattern.value(index, '', true, more)
          return pattern.text(upperEscapes(name), pattern.either(given, alone))
        })
        .reduceRight((others, one) => pattern.either(one, others))
    return pattern.either(pattern.text(prefix, pattern.list(separator, pair, next)), next)
  }
}

/** Upper-cases escapes, because their letters may be of either case. */
function upperEscapes(text: string): string {
  return text.replaceAll(/%[0-9A-Fa-f]{2}/g, (escape) => escape.toUpperCase())
}

/** `undefined` when the bytes are not UTF-8. */
function decoded(value: string): string | undefined {
  try {
    return decodeURIComponent(value)
  } catch {
    return undefined
  }
}

function invalid(template: unknown, why: string): RallyError {
  return new RallyError('RESOURCE_INVALID', `The URI template ${JSON.stringify(template)} is not valid: ${why}.`)
}
